"""Real BAM files of Debian packages (scripts/fetch-real-bams.sh), compared with the reference."""

import hashlib
import os
import pathlib
import unittest

import bamfile
from harness import ORDERS, ROOT, SPILL_BUDGET, CliTest, needs_pysam, reference

REAL_BAMS = pathlib.Path(os.environ.get("ROCKSORT_REAL_BAMS", ROOT / "build/real-bams/bams"))
# Larger files would only take time; generated files are harder to sort.
LIMIT_BYTES = 4_000_000
# Smaller files are not spilled, and files smaller than the second size get tiny runs.
SPILL_BYTES, TINY_RUNS_BYTES = 30_000, 1_000_000


@needs_pysam
@unittest.skipUnless(REAL_BAMS.is_dir(), f"no real BAM files in {REAL_BAMS}")
class RealFiles(CliTest):
    """One test for each order, so that one of them can be run alone."""

    def files(self):
        """(path, budgets) of the files. Files with the same content are used once, because packages
        share their examples."""
        seen = set()
        for source in sorted(REAL_BAMS.rglob("*.bam")):
            data = source.read_bytes()
            digest = hashlib.sha256(data).digest()
            if len(data) > LIMIT_BYTES or digest in seen:
                continue
            seen.add(digest)
            if len(data) < SPILL_BYTES:
                yield source, (None,)
            else:
                yield source, (None, SPILL_BUDGET * (1 if len(data) < TINY_RUNS_BYTES else 10))

    def check(self, order, most_bytes=LIMIT_BYTES):
        """For each file that the reference can sort, our output is the same."""
        n_files = 0
        for source, budgets in self.files():
            if source.stat().st_size > most_bytes:
                continue
            target, options = self.path("want.bam"), ORDERS[order]
            if not reference("sort", "--no-PG", *options, "-O", "bam", "-o", target, source):
                continue  # a broken file, which packages have as well
            want = bamfile.read(target)
            n_files += 1
            for budget in budgets:
                with self.subTest(file=source.name, budget=budget):
                    got = self.sort_bam("--no-PG", *options, source, budget=budget)
                    self.assert_same_bam(got, want, source.name)
        self.assertGreater(n_files, 0)

    def test_real_files_by_coordinate_are_those_of_samtools(self):
        self.check("coordinate")

    def test_real_files_by_natural_name_are_those_of_samtools(self):
        self.check("natural", 12 << 20)

    def test_real_files_by_lexicographical_name_are_those_of_samtools(self):
        self.check("lexicographical", 1 << 20)
