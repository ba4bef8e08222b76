"""--markdup in its memory: piles, names and records of all kinds."""

import filecmp
import itertools
import random
import struct

import bamfile
from harness import CliTest, needs_pysam, own_memory_only, reference_ok, text_of
from test_markdup import HEADER, PAIRED, READ1, READ2, REVERSE, SUPPLEMENTARY, pair, read


@own_memory_only
@needs_pysam
class Memory(CliTest):
    """Peak memory is the budget plus 64 MiB, and what is found is right."""

    N = 3_000_000
    BASES = 20

    def record(self, flag, mate, aux):
        """What stands before the name, and what stands behind the CIGAR, of a record; the name has
        8 characters."""
        raw = bamfile.record("12345678", flag, 0, 0, f"{self.BASES}M", "A" * self.BASES, aux,
                             mate=mate)
        raw = raw.replace(b"\xff" * self.BASES, b"\x1e" * self.BASES)
        at = raw.index(b"12345678")
        return raw[:at], raw[at + 8:]

    def write_records(self, records):
        """Writes an uncompressed BAM from an iterator of bytes."""
        path = self.path("in.bam")
        with open(path, "wb") as file:
            file.write(bamfile.bam_header("", [("chr1", 1 << 28)]))
            while chunk := b"".join(itertools.islice(records, 10_000)):
                file.write(chunk)
        return path

    def single(self):
        return self.record(0, (-1, -1, 0), b"")

    def ends(self, length):
        """Both records of a pair; the mate of each is so far away."""
        aux = b"MCZ%dM\0msI" % self.BASES + struct.pack("<I", 30 * self.BASES)
        return (self.record(PAIRED | READ1 | 32, (0, 0, length), aux),
                self.record(PAIRED | READ2 | REVERSE, (0, 0, -length), aux))

    def check(self, source, megabytes, n_best, *options, threads=2):
        out = self.path("out.bam")
        self.assert_peak(2 * megabytes, "-@", threads, "--max-memory", f"{2 * megabytes}M", "-l",
                         "1", "--markdup=" + " ".join(options), "-o", out, source)
        reference_ok("view", "-c", "-F", "1024", "-o", self.path("count"), out)
        self.assertEqual(int(text_of(self.path("count"))), n_best)

    def at(self, head, begin, mate=None):
        """The head of a record with another position, and that of its mate."""
        head = head[:8] + struct.pack("<i", begin) + head[12:]
        return head if mate is None else head[:28] + struct.pack("<i", mate) + head[32:]

    def test_pile_of_single_reads(self):
        head, tail = self.single()
        source = self.write_records(head + b"%08d" % i + tail for i in range(self.N))
        self.check(source, 16, 1)

    def test_pile_of_pairs(self):
        """All at one position, and all with the same score, so that names decide; the best comes
        last."""
        (head1, tail1), (head2, tail2) = self.ends(0)
        source = self.write_records(head1 + name + tail1 + head2 + name + tail2
                                    for name in (b"%08d" % (self.N - i)
                                                 for i in range(self.N // 2)))
        self.check(source, 16, 2)

    def test_many_keys(self):
        """A million of keys of pairs and of single reads: the tables do not hold them at once. Each
        has one duplicate."""
        n = 500_000
        (head1, tail1), (head2, tail2) = self.ends(100)
        single_head, single_tail = self.single()

        def records():
            for i in range(n):
                begin = 200 * (i % (n // 2))
                name = b"%08d" % i
                yield self.at(head1, begin, begin + 100) + name + tail1
                yield self.at(head2, begin + 100, begin) + name + tail2
                yield self.at(single_head, begin + 50) + b"%08d" % (i + n) + single_tail
        self.check(self.write_records(records()), 4, 3 * n // 2)

    TAGS = ("-t", "--duplicate-count", "-d 2500", "-S -t -d 2500 --duplicate-count",
            "-t --no-multi-dup", "-t -d 2500 --optical-only", "--ignore-strand -t -d 2500",
            "--ignore-strand --duplicate-count", "--barcode-name --barcode-mismatches 1")

    def test_pile_with_tags(self):
        """A place that does not fit in memory is decided on the disk, with the same result."""
        rng = random.Random(15)
        bases = "ACGT"
        lines = []
        for i in range(20_000):
            umi = "".join(rng.choice(bases) for _ in range(3))
            name = f"M:1:F:1:{rng.randrange(3)}:{rng.randrange(9000)}:{i}:{umi}"
            if i % 3:
                lines += pair(name, 9, 30, score=rng.choice("5:?D"))
            else:
                lines.append(read(name, 0, 9))
        source = self.write("in.sam", HEADER + "".join(line + "\n" for line in lines))
        for options in self.TAGS:
            texts = []
            for megabytes in (400, 1):
                out = self.path("out.sam")
                self.sort_ok("--no-PG", "-@", "2", "--max-memory", f"{megabytes}M", "--fixmate",
                             "--markdup=" + options, "-o", out, source)
                with open(out, encoding="ascii") as file:
                    texts.append([line for line in file if line[0] != "@"])
            self.assertEqual(texts[1], texts[0], options)
            n_marked = sum(int(line.split("\t")[1]) & 1024 > 0 for line in texts[0])
            self.assertGreater(n_marked, 10_000, options)

    def test_memory_of_piles_with_tags(self):
        """Three million reads of one key."""
        head, tail = self.single()
        source = self.write_records(head + b"%08d" % i + tail for i in range(self.N))
        self.check(source, 16, 1, "-t", "--duplicate-count")

    def test_memory_of_optical_piles(self):
        (head1, tail1), (head2, tail2) = self.ends(0)
        source = self.write_records(head1 + name + tail1 + head2 + name + tail2
                                    for name in (b"%08d" % i for i in range(self.N // 2)))
        self.check(source, 16, 2, "-t", "-d 2500", "-c")

    def piled(self, n):
        """n records, all of which begin or end at one place: pairs and single reads with
        coordinates of a flow cell and barcodes."""
        rng = random.Random(8)
        (head1, tail1), (head2, tail2) = self.ends(0)
        head, tail = self.single()

        def lengthen(head, bytes_more, name_bytes):
            n_bytes = struct.unpack("<I", head[:4])[0]
            return (struct.pack("<I", n_bytes + bytes_more) + head[4:12] +
                    bytes([name_bytes + 1]) + head[13:])

        for _ in range(n // 5):
            for is_pair in (True, True, False):
                name = b"M:1:%d:%05d:%05d" % (1101 + rng.randrange(40), rng.randrange(20000),
                                              rng.randrange(20000))
                aux = b"RXZ" + bytes(rng.choice(b"ACGT") for _ in range(6)) + b"\0"
                for before, after in (((head1, tail1), (head2, tail2)) if is_pair else
                                      ((head, tail),)):
                    yield (lengthen(before, len(name) - 8 + len(aux), len(name)) + name + after +
                           aux)

    def compare_with_memory(self, option):
        """What is sorted on the disk, in little memory, is decided as in memory."""
        source = self.write_records(self.piled(200_000))
        small, large = self.path("small.sam"), self.path("large.sam")
        options = ["-@", "2", "--no-PG", "-O", "sam", "--markdup=" + option]
        self.assert_peak(12, *options, "--max-memory", "12M", "-o", small, source)
        self.sort_ok(*options, "--max-memory", "400M", "-o", large, source)
        self.assertTrue(filecmp.cmp(small, large, shallow=False))

    def test_mixed_pile_with_tags(self):
        self.compare_with_memory("-t -d 100 -c --duplicate-count -S")

    def test_mixed_pile_with_mismatches(self):
        self.compare_with_memory("--barcode-tag RX --barcode-mismatches 1 -t -d 2500")

    def test_mixed_pile_without_tags(self):
        self.compare_with_memory("--barcode-tag RX --barcode-mismatches 1")


    def test_places_of_all_sizes(self):
        """Tags are the same in any memory, and places that are too large for a part are decided
        soon: once that took 65536 passes, and those that had been decided were decided again."""
        rng = random.Random(7)
        lines = []
        for place in range(1500):
            n = 2000 if place == 700 else rng.choice((1, 2, 3, 3, 60 if place % 9 == 0 else 4))
            for i in range(n):
                lines += pair(f"M:1:F:1:{rng.randrange(3)}:{rng.randrange(9000)}:{place * 4000 + i}",
                              9 + 40 * place, 30 + 40 * place, score=rng.choice("5:?D"))
        source = self.write("in.sam", HEADER + "".join(line + "\n" for line in lines))
        want = None
        for megabytes in (400, 12, 6, 3, 1):
            out = self.path("out.sam")
            self.sort_ok("--no-PG", "-@", "2", "--max-memory", f"{megabytes}M", "--fixmate",
                         "--markdup=-S -t -d 2500 --duplicate-count", "-o", out, source)
            got = text_of(out)
            want = want or got
            self.assertTrue(got == want, megabytes)

    def test_long_names_with_tags(self):
        """do has the name of the original. With many threads and little memory a block has few
        records, and each block that was opened once read the notes of 4096: that took four times
        as long, and 120 MiB instead of 80."""
        n = 100_000
        (head1, tail1), (head2, tail2) = self.ends(100)

        def longer(head, begin, mate):
            head = self.at(head, begin, mate)
            size, = struct.unpack_from("<I", head)
            return struct.pack("<I", size + 242) + head[4:12] + bytes([251]) + head[13:]

        def records():
            for i in range(n):
                begin = 200 * (i // 2)
                name = b"%08d" % i + b"x" * 242
                yield longer(head1, begin, begin + 100) + name + tail1
                yield longer(head2, begin + 100, begin) + name + tail2
        source = self.write_records(records())
        self.check(source, 16, n, "-t", threads=64)

    def test_records_that_grow(self):
        """A duplicate gets the name of its original (-t), which may be longer than the whole record.
        Blocks that were opened once took five times as much as was planned for them."""
        n, n_places = 1_000_000, 1000
        self.BASES = 10
        head, tail = self.single()
        size, = struct.unpack_from("<I", head)
        best = (struct.pack("<I", size + 242) + head[4:12] + bytes([251]) + head[13:],
                tail.replace(b"\x1e" * self.BASES, b"\x28" * self.BASES))

        def records():
            for i in range(n_places):
                yield self.at(best[0], i) + b"%08d" % i + b"x" * 242 + best[1]
            for i in range(n):
                yield self.at(head, i % n_places) + b"%08d" % i + tail
        self.check(self.write_records(records()), 16, n_places, "-t", threads=8)

    def test_many_read_groups(self):
        """Each job once had counts of all groups, of 16 threads 80 MiB. The groups have a library
        each."""
        n_groups, n = 20_000, 600_000
        head, tail = self.single()
        size, = struct.unpack_from("<I", head)
        header = "".join(f"@RG\tID:{i:05}\tLB:{i}\n" for i in range(n_groups))
        source = self.path("groups.bam")
        with open(source, "wb") as file:
            file.write(bamfile.bam_header(header, [("chr1", 1 << 28)]))
            for i in range(n):
                file.write(struct.pack("<I", size + 9) + self.at(head, i // n_groups)[4:] +
                           b"%08d" % i + tail + b"RGZ%05d\0" % (7 * i % n_groups))
        stats = self.path("stats")
        self.check(source, 32, n, f"--use-read-groups -f {stats}", threads=16)
        lines = text_of(stats).splitlines()
        self.assertEqual(lines.count("EXAMINED: 30"), n_groups)
        self.assertEqual(lines.count(f"EXAMINED: {n}"), 1)

    def test_many_names_with_others(self):
        """-S: the names of all duplicates must be found among those of all other records."""
        n = 500_000
        head, tail = self.record(0, (-1, -1, 0), b"SAZchr1,9,+,20M,9,0;\0")
        other_head, other_tail = self.record(SUPPLEMENTARY, (-1, -1, 0), b"")

        def records():
            for i in range(n):
                name = b"%08d" % i
                yield self.at(head, i // 2) + name + tail
                yield self.at(other_head, 7 * i) + name + other_tail
        self.check(self.write_records(records()), 4, n, "-S")
