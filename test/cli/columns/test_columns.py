"""-O arrow: the sorted records as columns. pyarrow, Polars and DuckDB read them; the lines of SAM that
the columns make are those of the sorted BAM."""

import io
import os
import random
import string
import unittest

import bamfile
import columns
import generate
from checkpoints import ResumeTest
from harness import SAMTOOLS, SPILL_BUDGET, bytes_of, reference_view, sam_split
from workflow_reads import templates, write_sam

try:
    import duckdb
    import polars
    import pyarrow
    import pyarrow.dataset
    import pyarrow.ipc
except ImportError:
    pyarrow = None

needs_readers = unittest.skipUnless(pyarrow, "pyarrow, Polars or DuckDB is not installed")
SQ = "@SQ\tSN:c\tLN:100000\n@SQ\tSN:d\tLN:100000\n"
# Standard tags, some of them with a type that is not theirs; and others.
TAGGED = SQ + "".join(
    f"r{i}\t0\t{'cd'[i % 2]}\t{1 + i * 7919 % 90000}\t{i % 61}\t4M\t*\t0\t0\tACGT\tIIII\t{tags}\n"
    for i, tags in enumerate([
        "NM:i:3\tMD:Z:4\tXS:i:-70000", "NM:Z:three\tNH:i:1", "ML:B:C,1,200\tMM:Z:C+m,0,1;",
        "ML:B:s,-1\tTS:A:-", "RG:Z:a\tCO:Z:a b c", "FZ:B:S,1,65535\tXf:f:0.1", "Xd:Z:\tXH:H:1A",
        "UQ:i:4294967295\tAS:i:-2147483648", "XB:B:f,0.1,1e30\tXI:B:I,4294967295",
    ] * 40))


@needs_readers
class ColumnsTest(ResumeTest):
    """Sorts to a file of columns, of the form that its name says."""

    FORM = "arrow"

    def read(self, path):
        """The table of a file, which must be sound."""
        table = columns.read_table(path)
        table.validate(full=True)
        return table

    def table(self, *args, **how):
        """Sorts to a file and returns its table."""
        out = self.path("out." + self.FORM)
        self.sort_ok("--no-PG", *args, "-o", out, **how)
        return self.read(out)

    def lines_of_bam(self, *args, **how):
        """The header and the lines of the sorted BAM."""
        bam = self.path("want.bam")
        self.sort_ok("--no-PG", *args, "-o", bam, **how)
        text = reference_view(bam, "-h", "--no-PG").encode("latin-1").decode()
        return sam_split(text)

    def assert_lines(self, table, want):
        header, lines = want
        got = columns.lines_of(table)
        self.assertEqual(len(got), len(lines))
        for mine, theirs in zip(got, lines):
            self.assertEqual(mine, theirs)
        self.assertEqual(table.schema.metadata[b"sam_header"].decode(), header)

    def assert_same_as_bam(self, *args, **how):
        """The columns hold what the sorted BAM does. Returns the table."""
        table = self.table(*args, **how)
        self.assert_lines(table, self.lines_of_bam(*args, **how))
        return table


class SharedContent:
    """What is true of all forms."""

    def test_columns_hold_what_the_bam_does(self):
        bam = self.bam_of(generate.odd(2000, seed=7))
        for options, budget in (([], None), ([], SPILL_BUDGET), (["-n"], SPILL_BUDGET),
                                (["-l", "1"], None), (["-l", "5", "-@", "3"], SPILL_BUDGET),
                                (["-u"], None), (["-t", "XI"], None),
                                (["-N", "-@", "2"], SPILL_BUDGET)):
            with self.subTest(options=options, budget=budget):
                self.assert_same_as_bam(*options, bam, budget=budget)

    def test_what_has_no_value_is_null(self):
        table = self.table(self.bam_of(SQ + "*\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n"))
        row, = table.to_pylist()
        self.assertEqual({name for name, value in row.items() if value is not None},
                         {"flag", "mapq", "tlen"})

    def test_input_without_records_is_an_empty_table(self):
        for sam in (SQ, "@CO\tno references\n"):
            table = self.assert_same_as_bam(self.bam_of(sam))
            self.assertEqual(table.num_rows, 0)

    def test_bytes_of_a_small_table_do_not_depend_on_threads(self):
        self.assert_same_bytes(self.bam_of(generate.odd(2000, seed=3)))

    def assert_same_bytes(self, bam):
        """Two sorts write the same bytes, which are returned."""
        outs = []
        for i in range(2):
            out = self.path(f"{i}.{self.FORM}")
            self.sort_ok("--no-PG", "-@", "3", "-o", out, bam)
            outs.append(bytes_of(out))
        self.assertEqual(outs[0], outs[1])
        return outs[0]


class SharedOptions:
    """Options that do the same for all forms."""

    def test_named_columns_alone_are_written(self):
        bam = self.bam_of(TAGGED)
        whole = self.table(bam)
        table = self.table("--columns", "pos,XS:i,MD,flag,ML:B:s,XZ:Z,XB:B:f,Xf:f", bam)
        self.assertEqual(table.schema.names, ["pos", "XS", "MD", "flag", "ML", "XZ", "XB", "Xf"])
        self.assertEqual(table.column("pos"), whole.column("pos"))
        self.assertEqual(table.column("MD"), whole.column("MD"))
        self.assertEqual(set(table.column("XS").to_pylist()), {None, -70000})
        self.assertEqual([one for one in table.column("ML").to_pylist() if one], [[-1]] * 40)
        self.assertEqual(table.column("XZ").null_count, table.num_rows)
        self.assertEqual(len([one for one in table.column("XB").to_pylist() if one]), 40)
        more = self.table("--columns", "XS:i,all", bam)
        self.assertEqual(set(more.schema.names), {"XS", *whole.schema.names})
        self.assertNotIn("XS", dict(sum((one or [] for one in more.column("tags").to_pylist()), [])))

    def test_merged_inputs_become_columns(self):
        one = self.bam_of(TAGGED, name="1.bam")
        self.sort_ok("-o", one, one)
        two = self.bam_of(TAGGED.replace("NM:i", "SM:i"), name="2.bam")
        self.sort_ok("-o", two, two)
        table = self.assert_same_as_bam("--merge", one, two)
        self.assertIn("SM", table.schema.names)

    def test_duplicates_are_marked_in_columns(self):
        sam = self.path("mates.sam")
        write_sam(sam, *templates(600, seed=1))
        table = self.assert_same_as_bam("--fixmate=-m", "--markdup", sam)
        self.assertIn("MQ", table.schema.names)
        n_marked = sum(flag & 0x400 > 0 for flag in table.column("flag").to_pylist())
        self.assertGreater(n_marked, 100)
        fewer = self.assert_same_as_bam("--fixmate=-m", "--markdup=-r", sam)
        self.assertEqual(fewer.num_rows, table.num_rows - n_marked)

    def test_groups_are_tables(self):
        bam = self.bam_of(TAGGED)
        whole = self.table(bam)
        os.mkdir(self.path("p"))
        self.sort_ok("--no-PG", "--split-by", "contig", "-o", self.path("p/%." + self.FORM), bam)
        names = [f"{name}.{self.FORM}" for name in ("c", "d", "unplaced")]
        self.assertEqual(sorted(os.listdir(self.path("p"))), names)
        *groups, unplaced = [self.read(self.path("p/" + name)) for name in names]
        self.assertEqual(groups[0].schema, whole.schema)
        self.assertEqual(sum((columns.lines_of(group) for group in groups), []),
                         columns.lines_of(whole))
        self.assertEqual(unplaced.num_rows, 0)


class SharedBadInput:
    """Records that columns cannot hold."""

    def refused(self, tags, mention):
        """A record with these tags, among others, cannot be written as columns, and what was written
        is no file that can be read; as BAM it can."""
        records = [bamfile.record(name=f"r{i}", seq="ACGT") for i in range(100)]
        records.insert(50, bamfile.record(name="bad", seq="ACGT", aux=tags))
        bam = self.write("bad.bam", bamfile.bam_file(SQ, [("c", 100000), ("d", 100000)], records))
        out = self.path("o." + self.FORM)
        for args in (["-o", out], ["-O", self.FORM]):
            result = self.rocksort(*args, bam)
            self.assert_error(result, "read 'bad' cannot be written as columns", mention)
            self.assertFalse(os.path.exists(out))
            if result.out:
                with self.assertRaises((pyarrow.ArrowInvalid, OSError)):
                    self.read_bytes(result.out)
        self.sort_ok("-o", self.path("o.bam"), bam)

    def test_record_with_a_tag_twice_is_refused(self):
        self.refused(b"NMC\1NMC\2", "it has a tag twice")


@needs_readers
class BrokenOff(ColumnsTest):
    """A stream that an error has ended."""

    def test_stream_without_its_end_is_noticed_by_the_reader(self):
        records = [bamfile.record(name=f"r{i}", flag=0, tid=0, pos=i) for i in range(20000)]
        records.append(bamfile.record(name="bad", aux=b"NMC\1NMC\2"))
        bam = self.write("bad.bam", bamfile.bam_file(SQ, [("c", 100000), ("d", 100000)], records))
        result = self.rocksort("-O", "arrow", bam, budget=SPILL_BUDGET)
        self.assert_error(result, "read 'bad' cannot be written as columns")
        stream = pyarrow.ipc.open_stream(result.out)
        self.assertGreater(stream.read_next_batch().num_rows, 0)
        with self.assertRaises((pyarrow.ArrowInvalid, OSError)):
            stream.read_all()


class Content(SharedContent, ColumnsTest):
    def test_standard_tags_have_columns_if_they_occur(self):
        table = self.assert_same_as_bam(self.bam_of(TAGGED))
        types = {field.name: str(field.type) for field in table.schema}
        self.assertEqual(types, {
            "qname": "string", "flag": "uint16", "pos": "int32", "end": "int32", "mapq": "uint8",
            "rname": "dictionary<values=string, indices=int32, ordered=0>", "cigar": "string",
            "rnext": "dictionary<values=string, indices=int32, ordered=0>", "pnext": "int32",
            "tlen": "int32", "seq": "string", "qual": "string", "tag_types": "string",
            "tags": "map<string, string>", "AS": "int64", "CO": "string", "FZ": types["FZ"],
            "MD": "string", "ML": types["ML"], "MM": "string", "NH": "int64", "NM": "int64",
            "RG": "string", "TS": "string", "UQ": "int64"})
        self.assertIn("item: uint16", types["FZ"])
        self.assertIn("item: uint8", types["ML"])
        self.assertEqual(table.column("NM").to_pylist().count(3), 40)
        self.assertEqual(table.column("NM").null_count, 320)
        self.assertEqual(list(table.schema.names)[:12], [
            "qname", "flag", "rname", "pos", "end", "mapq", "cigar", "rnext", "pnext", "tlen",
            "seq", "qual"])

    def test_tag_of_one_record_among_many_gets_a_column(self):
        lines = [f"r{i}\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI" + ("\tNM:i:9" if i == 4999 else "")
                 for i in range(5000)]
        for budget in (None, SPILL_BUDGET):
            table = self.table(self.bam_of(SQ + "\n".join(lines) + "\n"), budget=budget)
            self.assertEqual(table.column("NM").null_count, 4999)

    def test_column_end_is_that_of_the_alignment(self):
        lines = ["a\t0\tc\t10\t0\t2S3M4D5N1I2M\t*\t0\t0\t*\t*", "b\t4\tc\t11\t0\t3M\t*\t0\t0\t*\t*",
                 "c\t0\tc\t12\t0\t*\t*\t0\t0\t*\t*"]
        table = self.table(self.bam_of(SQ + "\n".join(lines) + "\n"))
        self.assertEqual(table.column("end").to_pylist(), [23, 11, 12])

    def test_long_cigar_is_in_its_column(self):
        sam = SQ + "r\t0\tc\t1\t9\t" + "1M1I" * 40000 + "\t*\t0\t0\t" + "A" * 80000 + "\t*\tXX:i:1\n"
        table = self.assert_same_as_bam(self.bam_of(sam))
        self.assertEqual(table.column("tag_types").to_pylist(), ["XX:C"])

    def test_stream_needs_no_end_to_be_read(self):
        bam = self.bam_of(generate.odd(2000, seed=3))
        want = self.table(bam)
        for options in (["-O", "arrow"], ["-O", "arrows"]):
            out = self.sort_ok("--no-PG", *options, bam).out
            self.assertEqual(pyarrow.ipc.open_stream(io.BytesIO(out)).read_all(), want)
        self.sort_ok("--no-PG", "-o", self.path("x.arrows"), bam)
        self.assertEqual(bytes_of(self.path("x.arrows")), out)
        with self.assertRaises(pyarrow.ArrowInvalid):
            pyarrow.ipc.open_file(self.path("x.arrows"))

    def test_named_pipe_gets_a_stream(self):
        bam = self.bam_of(TAGGED)
        want = self.table(bam)
        os.mkfifo(self.path("pipe.arrow"))
        for options in ([], ["-O", "arrow"]):
            with self.subTest(options=options):
                process = self.start("--no-PG", *options, "-o", self.path("pipe.arrow"), bam)
                with open(self.path("pipe.arrow"), "rb") as pipe:
                    self.assertEqual(pyarrow.ipc.open_stream(pipe).read_all(), want)
                self.assertEqual(process.wait(), 0)

    def test_all_readers_see_the_same_values(self):
        bam = self.bam_of(TAGGED)
        table = self.table(bam)
        frame = polars.read_ipc(self.path("out.arrow"))
        self.assertEqual(frame["pos"].sum(), sum(table.column("pos").to_pylist()))
        self.assertEqual(frame["rname"].cast(str).to_list(), table.column("rname").to_pylist())
        self.assertEqual(frame["NM"].to_list(), table.column("NM").to_pylist())
        database = duckdb.connect()
        database.register("reads", table)
        rows = database.sql("select rname, count(*), sum(NM), count(tags['XS']) "
                            "from reads group by rname order by rname").fetchall()
        self.assertEqual(rows, [("c", 180, 60, 20), ("d", 180, 60, 20)])


class LargeBuffers(ColumnsTest):
    """A buffer is compressed in blocks of 256 KB, into room that is made as it is needed."""

    def test_each_level_keeps_the_records(self):
        numbers = random.Random(7)
        letters = bytes(range(33, 127)).decode()
        lines = []
        for i in range(12000):
            # Of each batch some qualities can be compressed and others cannot; so can the tags.
            quality = "".join(numbers.choices(letters, k=150)) if i % 3 else "I" * 150
            text = numbers.randbytes(40).hex() if i % 2 else "-" * 80
            lines.append(f"r{i}\t0\tc\t{1 + numbers.randrange(90000)}\t60\t150M\t*\t0\t0\t"
                         f"{''.join(numbers.choices('ACGT', k=150))}\t{quality}\tXT:Z:{text}\n")
        source = self.write("large.sam", SQ + "".join(lines))
        want = self.lines_of_bam(source)
        for level in ("0", "1", "2", "6"):
            for memory in ("64M", "1G"):
                self.assert_lines(self.table("-l", level, "-m", memory, source), want)
                self.assertEqual(polars.read_ipc(self.path("out." + self.FORM)).height, 12000)


class Options(SharedOptions, ColumnsTest):
    def test_wrong_columns_are_refused(self):
        bam = self.bam_of(TAGGED)
        for columns_given, mention in [
                ("pos,", "an empty name in 'pos,'"), ("pos,name", "'name' is not a column"),
                ("XS", "'XS' is a tag without a type"), ("XS:x", "'XS:x' must have a type"),
                ("XS:i,XS:Z", "'XS:Z' names a tag twice"),
                (",".join(f"X{a}:i,Y{a}:i,Z{a}:i,U{a}:i,V{a}:i" for a in string.ascii_letters),
                 "is one column too many")]:
            result = self.rocksort("--columns", columns_given, "-o", self.path("o.arrow"), bam)
            self.assert_error(result, "--columns", mention)
            self.assertFalse(os.path.exists(self.path("o.arrow")))
        self.assert_error(self.rocksort("--columns", "pos", "-o", self.path("o.bam"), bam),
                          "add -O parquet")

    def test_standard_tag_of_another_type_is_warned_of(self):
        bam = self.bam_of(TAGGED)
        for name, warned in ("NM:Z", True), ("NM:i", False), ("NM", False), ("XS:Z", False):
            result = self.rocksort("--columns", "pos," + name, "-o", self.path("o.arrow"), bam)
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual("another type than the SAM" in result.err, warned, name)

    def test_extension_in_capitals_is_one(self):
        bam = self.bam_of(TAGGED)
        for name, magic in ("o.PARQUET", b"PAR1"), ("o.Arrow", b"ARROW1"):
            self.sort_ok("-o", self.path(name), bam)
            with open(self.path(name), "rb") as file:
                self.assertEqual(file.read(len(magic)), magic)
        for name, other in (("o.pq", ".parquet"), ("o.parquet.gz", ".parquet"),
                            ("o.feather", ".arrow"), ("o.csv", ".bam")):
            self.assert_error(self.rocksort("-o", self.path(name), bam), name, f"name it {other}",
                              "-O")
            self.assertFalse(os.path.exists(self.path(name)))
        self.sort_ok("-O", "parquet", "-o", self.path("o.pq"), bam)
        with open(self.path("o.pq"), "rb") as file:
            self.assertEqual(file.read(4), b"PAR1")
        self.assert_error(self.rocksort("-O", "arrow,level=1", "-o", self.path("x.arrow"), bam),
                          "-O arrow takes no format options")
        # In the syntax of 2014 a second argument is the name without .bam.
        result = self.run_program([SAMTOOLS, "rocksort", bam, self.path("y.parquet")])
        self.assertIn("y.parquet.bam' as", result.err.replace(",", ""))

    def test_index_of_columns_is_refused(self):
        bam = self.bam_of(TAGGED)
        self.assert_error(self.rocksort("--write-index", "-o", self.path("o.arrow"), bam),
                          "--write-index cannot index Arrow")

    def test_merge_of_a_pipe_to_columns_needs_named_columns(self):
        one = self.bam_of(TAGGED, name="1.bam")
        self.sort_ok("-o", one, one)
        bytes_of_one = bytes_of(one)
        out = self.path("o.arrow")
        result = self.rocksort("--merge", "-o", out, one, "-", stdin=bytes_of_one)
        self.assert_error(result, "reads its inputs twice", "standard input", "--columns")
        with open(one, "rb") as file:
            result = self.rocksort("--merge", "-o", out, one, "-", stdin=file)
        self.assert_error(result, "reads its inputs twice", "standard input", "--columns")
        self.sort_ok("--merge", "--columns", "pos,NM", "-o", out, one, "-", stdin=bytes_of_one)
        self.assertEqual(pyarrow.ipc.open_file(out).read_all().num_rows, 720)

    def test_directories_of_contigs_are_one_table(self):
        bam = self.bam_of(TAGGED)
        whole = self.table(bam)
        os.mkdir(self.path("set"))
        self.sort_ok("--no-PG", "--split-by", "contig", "-o",
                     self.path("set/contig=%/part-0.arrow"), bam)
        table = pyarrow.dataset.dataset(self.path("set"), format="arrow",
                                        partitioning="hive").to_table()
        self.assertEqual(table.column("contig").to_pylist(), table.column("rname").to_pylist())
        self.assertEqual(columns.lines_of(table.drop_columns("contig")), columns.lines_of(whole))

    def test_columns_are_kept_in_the_checkpoint(self):
        bam = self.source(3000)
        for options in ([], ["--columns", "pos,XI:i"], ["--columns", "all,XI:i"]):
            with self.subTest(options=options):
                checkpoint = self.fails_in_merge("-O", "arrow", *options, bam)
                want = self.table(*options, bam)
                self.resume(checkpoint, "-o", self.path("got.arrow"))
                got = pyarrow.ipc.open_file(self.path("got.arrow")).read_all()
                self.assertEqual(got.schema.names, want.schema.names)
                self.assertEqual(got.to_pylist(), want.to_pylist())


class BadInput(SharedBadInput, ColumnsTest):
    def read_bytes(self, data):
        return pyarrow.ipc.open_stream(io.BytesIO(data)).read_all()

    def test_damaged_tags_are_refused(self):
        for tags, mention in [
                (b"NMC\1NMC\2", "it has a tag twice"), (b"XXC\1XXZ\0", "it has a tag twice"),
                (b"XXZ\xff\0", "not UTF-8"), (b"MDZab\xc3\0", "not UTF-8"), (b"XXA ", "printable"),
                (b"X", "its tags are damaged"), (b"1XC\1", "a tag whose name")]:
            with self.subTest(tags=tags):
                self.refused(tags, mention)

    def test_tag_of_two_types(self):
        """One of the two would be in its column, and the other one in the map."""
        for tags in (b"NMC\1NMZ3\0", b"NMZ3\0NMC\1", b"XXC\1NMZ3\0XYC\1NMC\1"):
            with self.subTest(tags=tags):
                self.refused(tags, "it has a tag twice")

    def test_positions_beyond_32_bits_are_refused(self):
        most = 2**31 - 1
        for place in ({"pos": most}, {"pos": most - 2, "cigar": "3M"}, {"mate": (0, most, 0)},
                      {"mate": (0, -2, 0)}):
            with self.subTest(place=place):
                records = [bamfile.record(name="bad", flag=0, tid=0, **{"pos": 5, **place})]
                bam = self.write("bad.bam", bamfile.bam_file(SQ, [("c", most), ("d", 9)], records))
                out = self.path("o.arrow")
                self.assert_error(self.rocksort("-o", out, bam), "read 'bad' cannot be written",
                                  "it has a position below 1 or above 2147483647")
                self.assertFalse(os.path.exists(out))
                self.sort_ok("--columns", "qname,rname,rnext", "-o", out, bam)
                os.unlink(out)
        records = [bamfile.record(name="last", flag=0, tid=0, pos=most - 2, cigar="2M",
                                  mate=(0, most - 1, 0))]
        bam = self.write("last.bam", bamfile.bam_file(SQ, [("c", most), ("d", 9)], records))
        table = self.table(bam)
        self.assertEqual([table.column(name)[0].as_py() for name in ("pos", "end", "pnext")],
                         [most - 1, most, most])

    def test_name_of_a_reference_must_be_utf8(self):
        for name in ("caf\u00e9", "\u6f22"):
            sam = f"@SQ\tSN:{name}\tLN:9\nr\t0\t{name}\t1\t0\t1M\t*\t0\t0\tA\tI\n"
            table = self.table(self.write("good.sam", sam.encode()))
            self.assertEqual(table.column("rname").to_pylist(), [name])
        bad = self.write("bad.sam", "@SQ\tSN:caf\u00e9\tLN:9\n".encode("latin-1"))
        self.assert_error(self.rocksort("-o", self.path("o.arrow"), bad), "reference 'caf\\xe9'",
                          "not UTF-8", "-O bam")
        self.assertFalse(os.path.exists(self.path("o.arrow")))

    def test_header_that_is_not_utf8_comes_back(self):
        """Metadata are UTF-8: a header that is not is told from one that is, and can come back."""
        header = SQ + "@CO\tcaf\u00e9 \u00ff\u0080\u00bf\u00c0\n"
        for encoding in ("utf-8", "latin-1"):
            with self.subTest(encoding=encoding):
                table = self.table(self.write("in.sam", header.encode(encoding)))
                metadata = table.schema.metadata
                self.assertIn(header.splitlines()[-1], metadata[b"sam_header"].decode())
                self.assertEqual(metadata.get(b"sam_header_encoding"),
                                 b"latin-1" if encoding == "latin-1" else None)
                frame = polars.read_ipc(self.path("out.arrow"))
                self.assertEqual(frame.height, 0)

    def test_full_disk_is_an_error(self):
        result = self.rocksort("-O", "arrow", "-o", "/dev/full", self.bam_of(TAGGED))
        self.assert_error(result, "/dev/full", "No space left")
