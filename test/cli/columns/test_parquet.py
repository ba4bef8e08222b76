"""-O parquet: pyarrow, Polars and DuckDB read the same values, which are those of the sorted BAM;
the layout of files is what the format wants."""

import io
import math
import os
import random
import string

import generate
from harness import SPILL_BUDGET, bytes_of
from parquet_layout import Layout
from test_columns import (SQ, TAGGED, ColumnsTest, SharedBadInput, SharedContent, SharedOptions,
                          needs_readers)

try:
    import duckdb
    import polars
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None


def plain(value):
    """A value of a row as all readers have it: maps are lists of pairs; NaN is equal to NaN."""
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return [[key, one] for key, one in value.items()]
    return value


def random_integer(rng):
    return rng.choice([0, 1, -1, 127, 128, -128, 255, 256, 32767, -32768, 65535, 65536, 2147483647,
                       -2147483648, 4294967295, rng.randint(-300, 300),
                       rng.randint(-2**31, 2**32 - 1)])


def random_tag(rng, name):
    """A tag of a random type, as SAM has it."""
    kind = rng.choice("AifZHB")
    if kind == "A":
        value = rng.choice("!aZ~+")
    elif kind == "i":
        value = random_integer(rng)
    elif kind == "f":
        value = rng.choice(["0", "-0", "1.5", "-1e30", "1e-40", "inf", "-inf", "nan", rng.random()])
    elif kind == "H":
        value = "".join(rng.choice("0123456789ABCDEF") for _ in range(2 * rng.randint(0, 9)))
    elif kind == "Z":
        value = "".join(rng.choice("a ~\u00e9\u07ff\u0800\uffff\U0010ffff")
                        for _ in range(rng.choice([0, 1, 5, 300])))
    else:
        kind, letter = "B", rng.choice("cCsSiIf")
        least, most = {"c": (-128, 127), "C": (0, 255), "s": (-32768, 32767), "S": (0, 65535),
                       "i": (-2**31, 2**31 - 1), "I": (0, 2**32 - 1), "f": (-5, 5)}[letter]
        n = rng.choice([1, 2, 7, 8, 9, 100])
        value = ",".join([letter] + [str(rng.randint(least, most)) for _ in range(n)])
    return f"{name}:{kind}:{value}"


STANDARD = ["NM:i", "AS:i", "MD:Z", "RG:Z", "SA:Z", "TS:A", "ML:B", "FZ:B", "UQ:i", "CB:Z"]


def random_sam(n_records, seed):
    """Records with few or many different values, with all tags, or none, or any."""
    rng, lines = random.Random(seed), []
    kinds, n_names = rng.choice([(), STANDARD, STANDARD]), rng.choice([1, 10, 10**9])
    for i in range(n_records):
        n = rng.choice([0, 1, 4, 150])
        seq = "".join(rng.choice("ACGTN") for _ in range(n)) or "*"
        qual = "".join(chr(rng.randint(33, 126)) for _ in range(n)) if rng.random() < 0.9 else "*"
        tags = [random_tag(rng, "X" + chr(ord("a") + k)) for k in range(rng.choice([0, 0, 1, 3]))]
        for name in kinds:
            if rng.random() < 0.7:
                tags.append(random_tag(rng, name[:2]))
        name = f"r{rng.randrange(n_names)}" if rng.random() < 0.95 else "*"
        place = (f"{rng.choice('cd')}\t{rng.randint(1, 99000)}" if rng.random() < 0.9 else "*\t0")
        mate = (f"{rng.choice('cd')}\t{rng.randint(1, 99000)}" if rng.random() < 0.9 else "*\t0")
        flag = rng.choice([0, 16, 1024, 2048, 4095]) if place != "*\t0" else 4
        cigar = "*" if flag & 4 or not n else rng.choice([f"{n}M", f"{n}S", f"2D{n}I"])
        if qual == "*" * n:
            qual = "*"
        lines.append(f"{name}\t{flag}\t{place}\t{rng.randint(0, 255)}\t{cigar}\t{mate}\t"
                     f"{rng.randint(-10**6, 10**6)}\t{seq}\t{qual if n else '*'}" +
                     "".join("\t" + tag for tag in tags))
    return SQ + "\n".join(lines) + "\n"


@needs_readers
class ParquetTest(ColumnsTest):
    FORM = "parquet"

    def read(self, path):
        """The table of a file, which must be sound, and which all readers must find the same in."""
        data = bytes_of(path)
        table = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True).read()
        table.validate(full=True)
        self.layout = Layout(data, table)
        rows = [plain(list(row.values())) for row in table.to_pylist()]
        frame = polars.read_parquet(path)
        self.assertEqual([plain(row) for row in frame.rows()], rows)
        sheet = duckdb.sql(f"select * from '{path}'").to_arrow_table()
        self.assertEqual(sheet.column_names, table.column_names)
        self.assertEqual([plain(list(row.values())) for row in sheet.to_pylist()], rows)
        return table


class Content(SharedContent, ParquetTest):
    def test_pages_have_what_pyarrow_reads(self):
        for seed in range(12):
            for n_records in (seed % 3 + 7, 500):
                with self.subTest(seed=seed, n_records=n_records):
                    bam = self.bam_of(random_sam(n_records, seed))
                    self.assert_same_as_bam(*(["-u"] if seed % 2 else []), bam)

    def test_types_are_those_of_arrow(self):
        """Readers see the types that Arrow has, but that names of references are texts."""
        bam = self.bam_of(TAGGED)
        self.sort_ok("-o", self.path("out.arrow"), bam)
        arrow = super(ParquetTest, self).read(self.path("out.arrow"))
        table = self.assert_same_as_bam(bam)
        want = {field.name: str(field.type) for field in arrow.schema}
        want.update(rname="string", rnext="string")
        got = {field.name: str(field.type).replace("element", "item") for field in table.schema}
        for name in ("FZ", "ML", "tags"):
            want[name], got[name] = (text.replace(" not null", "").replace(f" ('{name}')", "")
                                     for text in (want[name], got[name]))
        self.assertEqual(got, want)
        self.assertEqual(table.schema.metadata[b"rocksort_columns"], b"1")
        self.assertTrue(all(field.nullable for field in table.schema))

    def test_groups_have_several_pages(self):
        rng = random.Random(5)
        place, lines = 0, []
        for i in range(45000):
            place += rng.choice([0, 0, 1, 30])
            lines.append(f"r{i}\t0\tc\t{1 + place // 20}\t{rng.choice([0, 60])}\t4M\t*\t0\t"
                         f"{rng.randint(-900, 900)}\tACGT\t{rng.choice(['IIII', 'FFFF'])}\t"
                         f"NM:i:{rng.choice([0, 1])}\tML:B:C,{i % 256},1\tXX:Z:{i % 50}\tMD:Z:{i}")
        bam = self.bam_of(SQ + "\n".join(lines) + "\n")
        table = self.assert_same_as_bam("-m", "1G", bam)
        self.assertEqual(len(self.layout.footer[4]), 1)
        self.assertGreaterEqual(self.layout.n_pages, 3 * len(table.schema.names))
        few = self.table("-m", "1G", bam, budget=4 * SPILL_BUDGET)
        self.assertGreater(len(self.layout.footer[4]), 1)
        self.assertTrue(few.equals(table, check_metadata=True))

    def test_footer_of_many_groups_is_right(self):
        """The footer is right, too, where what it says was in a temporary file: 1 MiB of it, and
        64 KiB of each output group, are in memory."""
        lines = [f"r{i}\t0\t{'cd'[i % 2]}\t{1 + i * 7919 % 99000}\t{i % 60}\t4M\t*\t0\t{i}\tACGT"
                 f"\tIIII\tMD:Z:{i}" for i in range(70000)]
        bam = self.bam_of(SQ + "\n".join(lines) + "\n")
        names = ["--columns", "all," + ",".join(f"{one}{two}:i" for one in "XYZ"
                                                for two in string.ascii_letters)]
        whole = self.path("whole.parquet")
        self.sort_ok("-m", "1G", *names, "-o", whole, bam)
        want = pyarrow.parquet.read_table(whole)
        for options, kept_bytes in (([], 1 << 20), (["--split-by", "contig"], 64 << 10)):
            self.sort_ok(*names, *options, "-o", self.path("x.%.parquet"), bam,
                         budget=SPILL_BUDGET)
            tables = []
            for name in ("c", "d") if options else ("%",):
                data = bytes_of(self.path(f"x.{name}.parquet"))
                table = pyarrow.parquet.read_table(self.path(f"x.{name}.parquet"))
                groups = Layout(data, table).footer[4]
                self.assertGreater(len(groups) * len(table.column_names) * 30, kept_bytes)
                tables.append(table)
            self.assertTrue(pyarrow.concat_tables(tables).equals(want))

    def test_row_may_be_larger_than_a_page(self):
        seq = "ACGT" * 400000
        lines = [f"a{i}\t0\tc\t{i + 1}\t9\t4M\t*\t0\t0\tACGT\tIIII\tML:B:C,{i},7"
                 for i in range(40)]
        lines[20] = (f"l\t0\tc\t21\t9\t{len(seq)}M\t*\t0\t0\t{seq}\t{'5' * len(seq)}\tML:B:C" +
                     ",9" * 2000000)
        lines[30] = "cigar\t0\tc\t31\t9\t" + "1M1I" * 40000 + "\t*\t0\t0\t" + "A" * 80000 + "\t*"
        self.assert_same_as_bam(self.bam_of(SQ + "\n".join(lines) + "\n"))
        n_chunks = sum(len(group[1]) for group in self.layout.footer[4])
        self.assertGreaterEqual(self.layout.n_pages, n_chunks + 3 * 2)

    def test_input_without_records_is_an_empty_table(self):
        super().test_input_without_records_is_an_empty_table()
        self.assertEqual(self.layout.footer[4], [])

    def test_many_references_are_one_dictionary(self):
        """References in an order that is not that of their names; long names have no bounds."""
        names = [f"chr{i}" for i in range(1, 30)] + ["x" * 64, "y" * 65]
        sq = "".join(f"@SQ\tSN:{name}\tLN:1000\n" for name in names)
        lines = [f"r{i}\t0\t{names[i % len(names)]}\t{1 + i}\t0\t1M\t{names[i // 9]}\t5\t0\tA\tI"
                 for i in range(270)]
        self.assert_same_as_bam(self.bam_of(sq + "\n".join(lines) + "\n"))
        group, = self.layout.footer[4]
        self.assertNotIn(4, group, "the names are not sorted as texts")
        self.assertNotIn(6, group[1][2][3][12])
        few = "".join(line + "\n" for line in lines if "y" not in line)
        self.assert_same_as_bam(self.bam_of(sq + few))
        group, = self.layout.footer[4]
        self.assertEqual(group[1][2][3][12][6], b"chr1")
        self.assertEqual(group[1][2][3][12][5], b"x" * 64)

    def test_two_sorts_write_the_same_bytes(self):
        bam = self.bam_of(generate.odd(2000, seed=3))
        written = self.assert_same_bytes(bam)
        piped = self.sort_ok("--no-PG", "-@", "3", "-O", "parquet", bam).out
        self.assertEqual(piped, written)

    def test_readers_that_skip_pages_find_all(self):
        bam = self.bam_of(generate.odd(3000, seed=9))
        rows = self.table("-m", "1G", bam, budget=SPILL_BUDGET).to_pylist()
        path = self.path("out.parquet")
        for rname, begin, end in [("chr10", 500, 500), ("chr10", 1, 70000), ("chr1", 60, 90000),
                                  ("none", 1, 9)]:
            want = sum(row["rname"] == rname and begin <= row["pos"] <= end for row in rows)
            frame = polars.scan_parquet(path).filter(
                (polars.col("rname") == rname) & polars.col("pos").is_between(begin, end)).collect()
            found, = duckdb.sql(f"select count(*) from '{path}' where rname = '{rname}' "
                                f"and pos between {begin} and {end}").fetchall()
            table = pyarrow.parquet.read_table(path, filters=[
                ("rname", "=", rname), ("pos", ">=", begin), ("pos", "<=", end)])
            self.assertEqual([frame.height, *found, table.num_rows], [want] * 3)


class Options(SharedOptions, ParquetTest):
    def test_all_types_of_tags(self):
        """Columns for tags that no standard defines."""
        kinds = "A:A,Z:Z,H:H,i:i,f:f,a:B:c,b:B:C,s:B:s,t:B:S,j:B:i,u:B:I,g:B:f".split(",")
        bam = self.bam_of(random_sam(500, seed=99).replace("\tXa:", "\tXA:"))
        want = self.lines_of_bam(bam)
        for i, kind in enumerate(kinds):
            one = f"X{'abc'[i % 3]}:{kind[2:]}"
            table = self.table("--columns", "all," + one, bam)
            self.assert_lines(table, want)
            self.assertIn(one[:2], table.schema.names)

    def test_levels_make_files_smaller(self):
        bam = self.bam_of(generate.odd(3000, seed=4))
        sizes = {}
        for level in ("0", "1", "9"):
            self.table("-l", level, bam)
            sizes[level] = os.path.getsize(self.path("out.parquet"))
        self.assertGreater(sizes["0"], sizes["1"])
        self.assertGreater(sizes["1"], sizes["9"])
        self.table(bam)
        self.assertEqual(os.path.getsize(self.path("out.parquet")), sizes["1"])
        self.table("-u", bam)
        self.assertEqual(os.path.getsize(self.path("out.parquet")), sizes["0"])

    def test_index_is_refused_and_full_disk_is_named(self):
        bam = self.bam_of(TAGGED)
        self.assert_error(self.rocksort("--write-index", "-o", self.path("o.parquet"), bam),
                          "--write-index cannot index Parquet")
        self.assert_error(self.rocksort("-O", "parquet", "-o", "/dev/full", bam), "/dev/full",
                          "No space left")

    def test_interrupted_sort_to_parquet_is_resumed(self):
        bam = self.source(3000)
        checkpoint = self.fails_in_merge("-O", "parquet", "--columns", "all,XI:i", bam)
        want = self.table("--columns", "all,XI:i", bam)
        self.resume(checkpoint, "-o", self.path("got.parquet"))
        self.assertEqual(self.read(self.path("got.parquet")).to_pylist(), want.to_pylist())


class Partitioned(ParquetTest):
    def test_directories_of_contigs_are_one_table(self):
        bam = self.bam_of(TAGGED)
        rows = self.table(bam).num_rows
        os.mkdir(self.path("set"))
        self.sort_ok("--no-PG", "--split-by", "contig", "-o",
                     self.path("set/contig=%/part-0.parquet"), bam)
        files = self.path("set/*/*.parquet")
        found, = duckdb.sql(f"select count(*) from read_parquet('{files}', hive_partitioning = true) "
                            "where contig = 'd' and rname = 'd'").fetchall()
        frame = polars.scan_parquet(self.path("set"), hive_partitioning=True).collect()
        table = pyarrow.parquet.read_table(self.path("set"))
        self.assertEqual([*found, (frame["contig"] == "d").sum(), frame.height, table.num_rows],
                         [rows // 2, rows // 2, rows, rows])


    def test_name_of_a_partition_may_have_an_equals_sign(self):
        """DuckDB reads no set with a directory such as contig=x=1."""
        bam = self.bam_of("@SQ\tSN:a\tLN:100\n@SQ\tSN:x=1\tLN:100\n" +
                          "r\t0\ta\t1\t0\t1M\t*\t0\t0\tA\tI\n" +
                          "s\t0\tx=1\t1\t0\t1M\t*\t0\t0\tA\tI\n")
        os.mkdir(self.path("set"))
        self.sort_ok("--split-by", "contig", "-o", self.path("set/contig=%/part-0.parquet"), bam)
        files = self.path("set/*/*")
        rows = duckdb.sql(f"select qname, rname, contig from read_parquet('{files}', "
                          "hive_partitioning = true) order by qname").fetchall()
        self.assertEqual(rows, [("r", "a", "a"), ("s", "x=1", "x_1")])


class BadInput(SharedBadInput, ParquetTest):
    def read_bytes(self, data):
        return pyarrow.parquet.read_table(io.BytesIO(data))
