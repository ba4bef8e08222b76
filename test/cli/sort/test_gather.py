"""--merge of inputs by coordinate that do not overlap: their compressed blocks are copied.

The output must have the records and the order of a merge that inflates everything (-l 6), and its
index must answer as that of samtools.
"""

import os
import random
import shutil
import struct

import bamfile
from harness import bytes_of, json_of, needs_pysam, reference_ok
from test_index import IndexTest, index_kind, random_reads, random_regions

REFS = [("chr1", 40_000_000), ("chr2", 9_000_000), ("chr3", 7_000_000)]
SQ = bamfile.sq_text(REFS)
HD = "@HD\tVN:1.6\tSO:coordinate\n"
N_READS = 6000


class GatherTest(IndexTest):
    """self.reads: sorted, the unplaced ones last."""

    def setUp(self):
        super().setUp()
        reads = random_reads(N_READS, REFS, seed=7)
        self.bam(reads, REFS, "unsorted.bam")
        self.sort_ok("--no-PG", "-o", self.path("whole.bam"), self.path("unsorted.bam"))
        self.whole = bamfile.read(self.path("whole.bam"))
        self.records = bamfile.split(self.whole.records)
        self.regions = random_regions(60, REFS)

    def piece(self, name, records, index="csi", text=HD + SQ):
        """A sorted BAM of these records with its index."""
        path = self.write(name, bamfile.bam_file(text, REFS, records))
        if index == "csi":
            reference_ok("index", "-c", path)
        elif index == "bai":
            reference_ok("index", "-b", path)
        return path

    def pieces(self, cuts, **how):
        """The sorted records, cut at these numbers of records."""
        ends = [0, *cuts, len(self.records)]
        return [self.piece(f"piece{i}.bam", self.records[begin:end], **how)
                for i, (begin, end) in enumerate(zip(ends, ends[1:]))]

    def gather(self, paths, *options, name="out.bam"):
        """Merges with an index. Returns what --report says of the merge."""
        self.sort_ok("--merge", "--write-index", "--no-PG", "--report", self.path("stats"), *options,
                     "-o", self.path(name), *paths)
        return json_of(self.path("stats"))

    def check_gather(self, paths, n_copied, name="out.bam", same_ties=True):
        stats = self.gather(paths, name=name)
        out = self.path(name.split("##idx##")[0])
        self.assertEqual(stats["merge"]["inputs_copied"], n_copied)
        self.assertEqual(stats["merge"]["inputs_merged"], len(paths) - n_copied)
        self.assertEqual(stats["output"]["records"], len(self.records))
        self.sort_ok("--merge", "-l", "6", "--no-PG", "-o", self.path("want.bam"), *paths)
        got = bamfile.read(out)
        self.assert_same_bam(got, bamfile.read(self.path("want.bam")))
        if same_ties:
            self.assert_same_records(got.records, self.whole.records)
        index = self.path(name.split("##idx##")[-1]) if "##" in name else out + ".csi"
        want = self.want_index(out, index_kind(index))
        self.assertEqual(self.ask(out, index, self.regions), self.ask(out, want, self.regions))


@needs_pysam
class Pieces(GatherTest):
    def contig_cuts(self):
        tids = [bamfile.fields(raw)[0] for raw in self.records]
        return [i for i in range(1, len(tids)) if tids[i] != tids[i - 1]]

    def test_pieces_by_contig_are_copied(self):
        cuts = self.contig_cuts()
        self.assertEqual(len(cuts), 3)
        paths = self.pieces(cuts)
        for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
            self.check_gather([paths[i] for i in order], 4)
        self.check_gather(paths, 0, name="out.bam##idx##" + self.path("out.bam.bai"))

    def test_pieces_that_end_anywhere_are_copied(self):
        rng = random.Random(2)
        n_placed = self.contig_cuts()[-1]
        for n_pieces in (2, 7, 30):
            cuts = sorted(rng.sample(range(1, n_placed), n_pieces - 1))
            self.check_gather(self.pieces(cuts), n_pieces)

    def test_two_inputs_with_unplaced_reads_are_merged(self):
        n_placed = self.contig_cuts()[-1]
        self.check_gather(self.pieces((1000, n_placed + 50)), 1)

    def test_pieces_with_bai_are_copied(self):
        paths = self.pieces((500, 2500, 4000), index="bai")
        self.check_gather(paths, 4, name="out.bam##idx##" + self.path("out.bam.bai"))
        self.check_gather(paths, 0)         # a CSI has fewer levels here

    def test_pieces_and_indexes_of_rocksort_are_copied(self):
        paths = self.pieces((900, 3000), index=None)
        for path in paths:
            shutil.move(path, self.path("old.bam"))
            self.sort_ok("--no-PG", "--write-index", "-o", path, self.path("old.bam"))
        self.check_gather(paths, 3)

    def test_empty_pieces_are_copied(self):
        empty = [self.piece(f"empty{i}.bam", []) for i in range(2)]
        paths = self.pieces((1000,))
        self.check_gather([empty[0], paths[0], empty[1], paths[1]], 4)
        self.gather(empty, name="none.bam")
        self.assertEqual(bamfile.read(self.path("none.bam")).records, b"")

    def test_inputs_that_overlap_alone_are_merged(self):
        cuts = (1000, 2000, 4000)
        paths = self.pieces(cuts)
        mixed = self.records[2000:4000]
        paths[2:3] = [self.piece("odd.bam", mixed[::2]), self.piece("even.bam", mixed[1::2])]
        self.check_gather(paths, 3, same_ties=False)

    def test_ties_between_pieces_come_in_order_of_the_names(self):
        """Where reads of one position end a piece and begin another, the first named comes first:
        in the other order the two are merged."""
        tied = [bamfile.record(f"t{i}", 0, 0, 100, "5M", "ACGTA") for i in range(40)]
        self.records = tied
        self.whole = self.whole._replace(records=b"".join(tied))
        paths = self.pieces((20,))
        self.check_gather(paths, 2)
        self.whole = self.whole._replace(records=b"".join(tied[20:] + tied[:20]))
        self.check_gather(paths[::-1], 2)


@needs_pysam
class NotCopied(GatherTest):
    """Inputs that must be read: the output is right all the same."""

    def test_input_without_index_is_read(self):
        paths = self.pieces((1000, 3000))
        os.unlink(paths[1] + ".csi")
        self.check_gather(paths, 0)

    def test_stale_or_damaged_index_is_not_trusted(self):
        paths = self.pieces((1000, 3000))
        index = paths[1] + ".csi"
        os.utime(index, (1, 1))
        self.check_gather(paths, 0)
        self.write(os.path.basename(index), b"CSI\1 nothing")
        self.check_gather(paths, 0)

    def test_input_without_eof_block_is_read(self):
        paths = self.pieces((1000, 3000))
        os.truncate(paths[0], os.stat(paths[0]).st_size - len(bamfile.EOF_BLOCK))
        reference_ok("index", "-c", paths[0])
        self.check_gather(paths, 0)

    def test_records_in_the_block_of_the_header_are_copied(self):
        paths = self.pieces((1000, 3000))
        raw = bamfile.bam_header(HD + SQ, REFS) + b"".join(self.records[:1000])
        self.write(os.path.basename(paths[0]), bamfile.bgzf(raw))
        reference_ok("index", "-c", paths[0])
        self.check_gather(paths, 0)

    def test_input_is_copied_if_no_record_has_a_changed_id(self):
        ends = (0, 1000, 3000, len(self.records))
        tagged = [bytearray(raw + b"PGZp\0") for raw in self.records[1000:3000]]
        for raw in tagged:
            struct.pack_into("<i", raw, 0, len(raw) - 4)
        for with_tags in (False, True):
            paths = []
            for i in range(3):
                records = self.records[ends[i] : ends[i + 1]]
                if with_tags and i == 1:
                    records = records[:-1] + tagged[-1:]
                text = HD + SQ + f"@PG\tID:p\tPN:p\tCL:{i}\n"
                paths.append(self.piece(f"piece{i}.bam", records, text=text))
            self.check_gather(paths, 2 if with_tags else 3, same_ties=not with_tags)
        self.assertIn(b"PGZp-2\0", bamfile.read(self.path("out.bam")).records)

    def test_options_that_look_at_records_copy_nothing(self):
        paths = self.pieces((1000, 3000))
        for options in (["-l", "1"], ["-u"], ["--deflate", "zlib"], ["--checksum"],
                        ["--flagstat", self.path("counts")]):
            with self.subTest(options=options):
                stats = self.gather(paths, *options)
                self.assertEqual(stats["merge"]["inputs_copied"], 0)
                self.assert_same_records(bamfile.read(self.path("out.bam")).records,
                                         self.whole.records)
        self.sort_ok("--merge", "-n", "-o", self.path("by_name.bam"),
                     self.piece("one.bam", [], index=None))


@needs_pysam
class Refused(GatherTest):
    def test_blocks_that_do_not_follow_each_other_are_refused(self):
        paths = self.pieces((1000, 3000))
        data = bytearray(bytes_of(paths[1]))
        offsets = bamfile.bgzf_block_offsets(bytes(data))
        data[offsets[2]] ^= 1
        index = paths[1] + ".csi"
        times = os.stat(index)
        self.write(os.path.basename(paths[1]), bytes(data))
        os.utime(index, ns=(times.st_atime_ns, times.st_mtime_ns + 10**10))
        out = self.path("out.bam")
        result = self.rocksort("--merge", "--write-index", "-o", out, *paths)
        self.assert_error(result, "piece1.bam", "damaged")
        self.assert_no_result(out)
        self.assertFalse(os.path.exists(out + ".csi"))

    def test_full_device_is_an_error(self):
        paths = self.pieces((1000, 3000))
        result = self.rocksort("--merge", "-o", "/dev/full", *paths)
        self.assert_error(result, "/dev/full", "No space left")
