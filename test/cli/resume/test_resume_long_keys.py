"""--resume of sorts by long tags whose runs were compacted: equal values lie in runs of both
processes, and in files that hold several runs."""

import random

import bamfile
from harness import json_of, needs_pysam, reference_ok
from checkpoints import KilledTest
from test_long_keys import HEADER, text_tag

BUDGET = 400_000


class LongKeys(KilledTest):
    """Records of a few long values."""

    # -s switches compaction on; one thread, so that runs come in one order.
    OPTIONS = ("-t", "XX", "-s", "30M", "-@", "1", "-u")

    def setUp(self):
        super().setUp()
        rnd = random.Random(91)
        shared = [bytes(rnd.choices(b"acgt", k=600)) for _ in range(3)]
        # The last bytes decide, or nothing does.
        records = b"".join(
            bamfile.record(name=f"r{i}", flag=rnd.choice((0, 16)), tid=0, pos=rnd.randrange(9),
                           cigar="300M", seq="A" * 300,
                           aux=text_tag("XX", rnd.choice(shared) + b"%d" % rnd.randrange(3000)))
            for i in range(8000))
        self.bam = self.write("in.bam", bamfile.bgzf(bamfile.bam_header(*HEADER) + records, 1))
        want = self.path("want.bam")
        reference_ok("sort", "--no-PG", "-m", "200M", "-u", "-t", "XX", "-o", want, self.bam)
        self.want = bamfile.read(want).records

    def check(self, checkpoint, *args):
        """Resumes; the records are those of samtools 1.24. Returns the statistics."""
        out, stats = self.path("out.bam"), self.path("report.json")
        self.resume(checkpoint, "--report", stats, *args, "-o", out, budget=BUDGET)
        self.assert_same_records(bamfile.read(out).records, self.want)
        self.sort_ok("--verify", "-t", "XX", out)
        data = json_of(stats)
        self.assertGreater(data["runs"]["runs"], data["scan"]["files"])
        return data

    @needs_pysam
    def test_long_keys_are_resumed_after_a_kill_in_the_merge(self):
        (checkpoint,), _ = self.killed_in_merge(*self.OPTIONS, self.bam, budget=BUDGET)
        self.assertEqual(self.state(checkpoint), "loaded")
        self.check(checkpoint)

    @needs_pysam
    def test_killed_after_a_compaction(self):
        args = [*self.OPTIONS, "-o", self.path("out.bam"), self.bam]
        checkpoint = self.killed("unlink:1:kill:/db-0/00", *args, budget=BUDGET)
        self.assertEqual(self.state(checkpoint), "loading")
        result = self.rocksort("--resume", checkpoint, "-s", "30M", clean=False, budget=BUDGET,
                               env=self.faulty("unlink:12:kill:/db-0/00"))
        self.assertEqual(result.status, -9, result.err)
        self.assertEqual(self.state(checkpoint), "loading")
        self.check(checkpoint)

    @needs_pysam
    def test_killed_within_a_compaction(self):
        """While the input is read: a compaction has written a part of its file."""
        args = [*self.OPTIONS, "-o", self.path("out.bam"), self.bam]
        checkpoint = self.killed("write:15:kill:/db-0/00", *args, budget=BUDGET)
        self.assertEqual(self.state(checkpoint), "loading")
        self.check(checkpoint)
