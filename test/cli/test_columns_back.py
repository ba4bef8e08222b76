"""rocksort-columns2sam: columns become BAM again, record for record, as rocksort wrote them and as
pyarrow, Polars and DuckDB wrote them again. rocksort itself refuses columns and names the script.
"""

import gzip
import os
import re
import shlex
import struct
import sys

import bamfile
import generate
from harness import BUILD, ROOT, bytes_of, environment, needs_pysam, own_memory_only
from test_columns import SQ, TAGGED, ColumnsTest

try:
    import duckdb
    import polars
    import pyarrow
    import pyarrow.compute
    import pyarrow.feather
    import pyarrow.ipc
    import pyarrow.parquet
    import pysam
except ImportError:
    pyarrow = None

SCRIPT = ROOT / "scripts/columns2sam.py"
FORMS = ("arrow", "arrows", "parquet")
LIST_KINDS = ("list", "large_list")


def cast(table, name, to):
    """The table with another type for a column: a type, or what makes an array of an array."""
    i = table.schema.get_field_index(name)
    chunks = [to(chunk) if callable(to) else chunk.cast(to) for chunk in table.column(i).chunks]
    return table.set_column(i, name, pyarrow.chunked_array(chunks))


def as_lists(kind, lists, values):
    """The lists of an array as those of another kind, with other values in them."""
    make = getattr(pyarrow, "".join(word.title() for word in kind.split("_")) + "Array")
    offsets = lists.offsets.cast(pyarrow.int64() if "large" in kind else pyarrow.int32())
    return make.from_arrays(offsets, values, mask=lists.is_null())


class Back(ColumnsTest):
    """Runs the script, and compares BAM made of its SAM with BAM made without columns."""

    def script(self, *args, stdin=None, **how):
        return self.run_program([sys.executable, SCRIPT, *args], stdin=stdin, **how)

    def back(self, *args, options=(), **how):
        """The Bam that rocksort makes of what the script writes."""
        result = self.script(*args, **how)
        self.assertEqual((result.status, result.err), (0, ""))
        return self.sort_bam("--no-PG", *options, "-o", "-", "-", stdin=result.out)

    def assert_comes_back(self, path, bam, *options, what="", header=()):
        want = self.sort_bam("--no-PG", *options, "-o", "-", bam)
        self.assert_same_bam(self.back(*header, path, options=options), want, what)

    def source(self, sam=TAGGED, form="arrow"):
        """A BAM file with these records, and its table, which is also in in.FORM."""
        bam = self.bam_of(sam)
        path = self.path("in." + form)
        self.sort_ok("--no-PG", "-o", path, bam)
        return bam, self.read(path)

    def save(self, table, name="x.arrow", rows=None, codec=None, **options):
        """Writes a file of Arrow, or a stream if the name says so, in batches of so many rows."""
        path = self.path(name)
        options = pyarrow.ipc.IpcWriteOptions(compression=codec, **options)
        make = pyarrow.ipc.new_stream if name.endswith("s") else pyarrow.ipc.new_file
        with pyarrow.OSFile(path, "wb") as file:
            with make(file, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=rows)
        return path

    def refused(self, args, *mentions, **how):
        """The script fails with one line, and so does rocksort, which reads its output."""
        result = self.script(*args, **how)
        self.assertEqual(result.status, 1, result.err)
        self.assertEqual(result.err.count("\n"), 1, result.err)
        for mention in ("rocksort-columns2sam: ", *mentions):
            self.assertIn(mention, result.err)
        out = self.path("o.bam")
        self.assertEqual(self.rocksort("-o", out, "-", stdin=result.out).status, 1)
        self.assertFalse(os.path.exists(out))


class Files(Back):
    """Files as rocksort wrote them."""

    def assert_all_forms_come_back(self, bam, *options):
        for form in FORMS:
            for more in [], ["-u"], ["-l", "3"]:
                path = self.path("back." + form)
                self.sort_ok("--no-PG", *options, *more, "-o", path, bam)
                self.assert_comes_back(path, bam, *options, what=(form, more))

    def test_records_of_all_kinds_come_back(self):
        self.assert_all_forms_come_back(self.bam_of(generate.odd(2000, seed=5)))
        self.assert_all_forms_come_back(self.bam_of(generate.odd(2000, seed=6)), "-n")

    def test_tags_of_all_types_come_back(self):
        self.assert_all_forms_come_back(self.bam_of(TAGGED))

    def test_tags_that_have_a_column_by_option_come_back(self):
        bam, path = self.bam_of(TAGGED), self.path("x.parquet")
        self.sort_ok("--no-PG", "--columns", "all,XS:i,Xf:f,Xd:Z,XH:H,XB:B:f,XI:B:I",
                     "-o", path, bam)
        self.assert_comes_back(path, bam)

    def test_long_cigar_comes_back(self):
        sam = (SQ + "r\t0\tc\t1\t9\t" + "1M1I" * 40000 + "\t*\t0\t0\t" + "A" * 80000 +
               "\t*\tXX:i:1\n")
        self.assert_all_forms_come_back(self.bam_of(sam))

    def test_empty_files_come_back(self):
        for sam in SQ, "@CO\tno references\n":
            self.assert_all_forms_come_back(self.bam_of(sam))

    @needs_pysam
    def test_numbers_come_back_with_all_digits(self):
        """Values are those of the BAM; SAM does not say in which types of integers they were."""
        tags = [b"NM" + kind + value for kind, value in (
            (b"c", b"\xfb"), (b"C", b"\x05"), (b"s", b"\x05\0"), (b"i", b"\x05\0\0\0"),
            (b"I", b"\xff\xff\xff\xff"), (b"Z", b"x\0"))]
        tags += [tag.replace(b"NM", b"xy") for tag in tags]
        tags += [b"Xff" + struct.pack("<f", value)
                 for value in (0.1, 1 / 3, 1e-42, -0.0, 3e38, float("inf"), float("nan"))]
        tags += [b"Xdd" + struct.pack("<d", value)
                 for value in (0.1, 1 / 3, 5e-324, -1e308, float("nan"))]
        tags += [b"XfBf" + struct.pack("<ifff", 3, 0.1, 1 / 3, float("nan")), b"XcBc\0\0\0\0",
                 b"XZZ\0", b"XZZnan(0x1)\0", b"XHH1A\0", b"FZBS\0\0\0\0",
                 b"MLBc" + struct.pack("<ib", 1, -1), b"XAA~", b"MDZ\0NMC\1XAAxxaC\2"]
        records = [bamfile.record(name=f"r{i:03}", seq="ACGT", aux=tag)
                   for i, tag in enumerate(tags)]
        bam = self.write("t.bam", bamfile.bam_file(SQ, [("c", 100000), ("d", 100000)], records))

        def values(path):
            with pysam.AlignmentFile(path) as file:
                return [(read.query_name, [(tag, repr(value)) for tag, value in read.get_tags()])
                        for read in file.fetch(until_eof=True)]
        for columns in [], ["--columns", "all,Xf:f,xy:i"]:
            self.sort_ok("-n", *columns, "-o", self.path("x.parquet"), bam)
            sam = self.script(self.path("x.parquet")).out
            self.sort_ok("-n", "-o", self.path("got.bam"), "-", stdin=sam)
            self.assertEqual(values(self.path("got.bam")), values(bam))

    def test_header_in_latin_1_or_utf_8_comes_back(self):
        for comment in b"@CO\tna\xefve \xc3\xa9 \xff\x80\n", "@CO\tna\u00efve\n".encode():
            source = self.write("old.sam", SQ.encode() + comment)
            for form in FORMS:
                self.sort_ok("--no-PG", "-o", self.path("x." + form), source)
                self.assertIn(comment, self.script(self.path("x." + form)).out)

    def test_stream_is_read_from_a_pipe_and_other_forms_from_a_file(self):
        bam = self.bam_of(TAGGED)
        want = self.sort_bam("--no-PG", "-o", "-", bam)
        for form in FORMS:
            self.sort_ok("--no-PG", "-o", self.path("x." + form), bam)
            with open(self.path("x." + form), "rb") as file:
                self.assert_same_bam(self.back("-", stdin=file), want)
            data = bytes_of(self.path("x." + form))
            if form == "arrows":
                self.assert_same_bam(self.back("-", stdin=data), want)
            else:
                self.refused(["-"], "pipe", "name the file", stdin=data)

    @own_memory_only
    def test_memory_does_not_grow_with_the_file(self):
        peaks = {form: [] for form in ("parquet", "arrow")}
        for n in 200, 2000:
            sam = SQ + "".join(f"r{i}\t4\t*\t0\t0\t*\t*\t0\t0\t{'ACGT' * 10000}\t{'I' * 40000}\n"
                               for i in range(n))
            source = self.write("long.sam", sam)
            for form, peaks_of_form in peaks.items():
                path = self.path("x." + form)
                self.sort_ok("-m", "64M", "-o", path, source)
                peaks_of_form.append(self.peak(path, program=(sys.executable, SCRIPT))[0])
        for small, large in peaks.values():
            self.assertLess(large, small + 60, peaks)       # of 160 MB of records


class Rewritten(Back):
    """Files that other programs have filtered and written again."""

    def setUp(self):
        super().setUp()
        sam = generate.odd(900, seed=3) + TAGGED.removeprefix(SQ).replace("\tc\t", "\tchr1\t")
        sam = sam.replace("\td\t", "\tchr2\t")
        self.bam, self.table_of_all = self.source(sam, "parquet")
        self.parquet, self.out = self.path("in.parquet"), self.path("x.parquet")
        header, lines = self.lines_of_bam(self.bam)
        kept = [line for line in lines if int(line.split("\t")[4]) >= 30]
        self.some = self.bam_of(header + "\n".join(kept) + "\n", name="some.bam")
        self.assertGreater(len(kept), 100)

    def test_files_rewritten_by_pyarrow_come_back(self):
        table = self.table_of_all
        some = table.filter(pyarrow.compute.greater_equal(table["mapq"], 30))
        for how in ({}, {"compression": "gzip", "data_page_version": "2.0"}, {"row_group_size": 7},
                    {"use_dictionary": False, "data_page_size": 64}, {"version": "1.0"},
                    {"store_schema": False}):
            pyarrow.parquet.write_table(some, self.out, **how)
            self.assert_comes_back(self.out, self.some, what=how,
                                   header=["--header", self.bam] if "store_schema" in how else [])
        pyarrow.feather.write_feather(some, self.path("x.feather"))
        self.assert_comes_back(self.path("x.feather"), self.some)

    def test_files_rewritten_by_polars_come_back(self):
        header = ["--header", self.bam]
        some = polars.scan_parquet(self.parquet).filter(polars.col("mapq") >= 30)
        for codec in "uncompressed", "snappy", "zstd":
            some.sink_parquet(self.out, compression=codec)
            self.assert_comes_back(self.out, self.some, header=header)
        some.sink_parquet(self.out, metadata=polars.read_parquet_metadata(self.parquet))
        self.assert_comes_back(self.out, self.some)
        for level in polars.CompatLevel.newest(), polars.CompatLevel.oldest():
            some.collect().write_ipc(self.out, compression="lz4", compat_level=level)
            self.assert_comes_back(self.out, self.some, header=header, what=level)
            some.collect().write_ipc_stream(self.out, compat_level=level)
            self.assert_comes_back(self.out, self.some, header=header, what=level)

    def test_files_rewritten_by_duckdb_come_back(self):
        for options in "", ", row_group_size 100, compression zstd", ", parquet_version v2":
            duckdb.sql(f"copy (from '{self.parquet}' where mapq >= 30) to '{self.out}' "
                       f"(format parquet{options})")
            self.assert_comes_back(self.out, self.some, header=["--header", self.bam], what=options)
        some = duckdb.sql(f"from '{self.parquet}' where mapq >= 30").to_arrow_table()
        some = some.replace_schema_metadata(self.table_of_all.schema.metadata)
        self.assert_comes_back(self.save(some), self.some)

    def test_header_option_takes_every_kind_of_header(self):
        bare = self.save(self.table_of_all.replace_schema_metadata({}))
        self.refused([bare], "no sam_header", "--header")
        text = bamfile.read(self.bam).text
        sam = self.write("header.sam", text)
        zipped = self.write("header.sam.gz", gzip.compress(text.encode()))
        for header in self.bam, sam, zipped:
            self.assert_comes_back(bare, self.bam, header=["--header", header])
        self.assert_same_bam(self.back("--header", "/dev/stdin", bare, stdin=bytes_of(self.bam)),
                             self.sort_bam("--no-PG", "-o", "-", self.bam))
        got = self.back("--header", self.write("more.sam", text + "@CO\tmine"), self.parquet)
        self.assertIn("@CO\tmine\n", got.text)
        other = self.write("other.sam", "@SQ\tSN:e\tLN:9\n")
        self.refused(["--header", other, bare], "header does not have its reference")
        self.refused(["--header", self.path("none"), bare], "No such file", "none")


class Layouts(Back):
    """Types and layouts that rocksort does not write."""

    def test_layouts_of_texts_are_read(self):
        bam, table = self.source()
        texts = ("qname", "cigar", "seq", "qual", "MD", "RG", "TS", "tag_types", "rname", "rnext")
        for name in "rname", "rnext":
            table = cast(table, name, pyarrow.string())
        for to in (pyarrow.large_string(), pyarrow.string_view(),
                   pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
                   pyarrow.dictionary(pyarrow.uint64(), pyarrow.large_string()),
                   lambda array: pyarrow.DictionaryArray.from_arrays(
                       array.dictionary_encode().indices,
                       array.dictionary_encode().dictionary.cast(pyarrow.string_view()))):
            changed = table
            for name in texts:
                changed = cast(changed, name, to)
            self.assert_comes_back(self.save(changed, codec="lz4"), bam, what=to)
            self.assert_comes_back(self.save(changed, rows=100), bam, what=to)

    def test_dictionaries_that_change(self):
        """A stream replaces and extends its dictionaries; entries may be null, and of no use."""
        bam, table = self.source(generate.odd(900, seed=11))
        chunks = []
        for batch in table.to_batches(max_chunksize=70):
            for name in "rname", "rnext", "qname", "cigar":
                i = batch.schema.get_field_index(name)
                texts = batch.column(i).cast(pyarrow.string())
                batch = batch.set_column(i, name, texts.dictionary_encode())
            chunks.append(batch)
        changed = pyarrow.Table.from_batches(chunks)
        for deltas in False, True:
            self.assert_comes_back(self.save(changed, "x.arrows", emit_dictionary_deltas=deltas),
                                   bam)
            self.assert_comes_back(self.save(changed.unify_dictionaries()), bam)
        bam, table = self.source()
        words = pyarrow.array(["d", None, "nowhere", "c", "d"])

        def change(array):
            numbers = [1 if name is None else 3 if name == "c" else 4 * (i % 2)
                       for i, name in enumerate(array.to_pylist())]
            return pyarrow.DictionaryArray.from_arrays(pyarrow.array(numbers), words)
        self.assert_comes_back(self.save(cast(cast(table, "rname", change), "rnext", change)), bam)

    def test_layouts_of_numbers_are_read(self):
        bam, table = self.source()
        for names, to in [
                (("flag", "pos", "mapq", "pnext", "tlen", "NM"), pyarrow.int64()),
                (("flag", "mapq"), pyarrow.int16()), (("pos", "pnext", "NM"), pyarrow.uint64()),
                (("NM", "NH"), pyarrow.uint8()), (("AS", "tlen", "NM"), pyarrow.int32()),
                (("flag", "NM"), pyarrow.float64())]:
            changed = table
            for name in names:
                changed = cast(changed, name, to)
            self.assert_comes_back(self.save(changed), bam, what=(names, to))
        self.sort_ok("--no-PG", "--columns", "all,Xf:f", "-o", self.path("f.arrow"), bam)
        changed = cast(self.read(self.path("f.arrow")), "Xf", pyarrow.float64())
        self.assert_comes_back(self.save(changed), bam)

    def test_lists_and_maps(self):
        bam, table = self.source()
        for kind in LIST_KINDS:
            changed = table
            for name in "ML", "FZ":
                changed = cast(changed, name,
                               lambda lists, of=kind: as_lists(of, lists, lists.values))
            changed = cast(changed, "tags", lambda maps, of=kind: as_lists(
                of, maps, pyarrow.StructArray.from_arrays([maps.keys, maps.items],
                                                          names=["key", "value"])))
            self.assert_comes_back(self.save(changed), bam, what=kind)
            self.assert_comes_back(self.save(changed, rows=70), bam, what=kind)
        maps = table.column("tags").combine_chunks()
        changed = pyarrow.MapArray.from_arrays(maps.offsets, maps.keys.dictionary_encode(),
                                               maps.items.cast(pyarrow.string_view()),
                                               mask=maps.is_null())
        self.assert_comes_back(self.save(cast(table, "tags", lambda array: changed)), bam)

    def test_columns_without_values_or_of_unknown_names_are_left_out(self):
        bam = self.bam_of(SQ + "r\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n" * 9)
        self.sort_ok("--no-PG", "--columns", "all,NM,ML,CO,XX:f", "-o", self.path("n.arrow"), bam)
        table = self.read(self.path("n.arrow"))
        for name in table.schema.names:
            if table.column(name).null_count == len(table):
                table = cast(table, name, lambda array: pyarrow.nulls(len(array)))
        table = table.append_column("contig", pyarrow.array([{"a": 1}] * 9))
        table = table.append_column("zz", pyarrow.array([{"a": 1}] * 9)).drop_columns("end")
        self.assert_comes_back(self.save(table.select(table.schema.names[::-1]), rows=4), bam)


class Refused(Back):
    def changed(self, name, values):
        """A file in which a column has other values."""
        _, table = self.source()
        at = table.schema.get_field_index(name)
        return self.save(table.set_column(at, name, pyarrow.array([values] * len(table))
                                          if not isinstance(values, pyarrow.Array) else values))

    def test_tables_that_are_no_records(self):
        _, table = self.source()
        self.refused([self.save(table.drop_columns(["seq", "cigar"]))], "cigar, seq")
        self.refused([self.save(table.append_column("pos", table["pos"]))], "pos")
        for name, values, mention in [
                ("pos", "x", "its column 'pos'"), ("NM", "x", "with another type"),
                ("ML", [[1]], "with another type"), ("ML", [2**40], "with another type"),
                ("ML", pyarrow.array([[1, None]] * 360, pyarrow.list_(pyarrow.uint8())),
                 "lacks a tag"),
                ("ML", pyarrow.array([[1]] * 360, pyarrow.list_view(pyarrow.uint8())),
                 "with another type"),
                ("tags", "x", "its column 'tags'"), ("tag_types", "XY:i", "lacks a tag"),
                ("tag_types", "NM", "lacks a tag"), ("flag", 1.5, "its column 'flag'"),
                ("qname", "a\tb", "a tab or a line break"),
                ("qname", "a\n", "a tab or a line break")]:
            with self.subTest(name=name, values=values):
                self.refused([self.changed(name, values)], mention)

    def test_values_that_records_cannot_have(self):
        for name, values, mention in [
                ("flag", 65536, "FLAG"), ("flag", -1, "FLAG"), ("mapq", 256, "MAPQ"),
                ("mapq", pyarrow.array([None] * 360, "uint8"), "MAPQ"), ("pos", -5, "POS"),
                ("cigar", "4Q", "CIGAR"), ("qual", "I", "QUAL"), ("qname", "x" * 255, "its name")]:
            with self.subTest(name=name, values=values):
                sam = self.script(self.changed(name, values)).out
                self.assert_error(self.rocksort("-o", self.path("o.bam"), "-", stdin=sam), mention)
                self.assertFalse(os.path.exists(self.path("o.bam")))

    def test_damaged_files(self):
        bam = self.bam_of(TAGGED)
        for form in FORMS:
            path = self.path("x." + form)
            self.sort_ok("--no-PG", "-o", path, bam)
            data = bytearray(bytes_of(path))
            self.refused([self.write("cut", data[:len(data) // 2])], "cut")
        data[4 + 200] ^= 1              # within a page, which has a checksum
        self.refused([self.write("changed", data)], "changed")
        self.refused([self.path("none")], "No such file")
        self.refused([bam], "in.bam")
        self.refused([self.write("empty", "")], "empty")
        self.refused([self.path("")], "Is a directory")

    def test_bad_arguments_are_refused(self):
        for args in [], ["--no-such-option", "x"], ["a", "b"]:
            result = self.script(*args)
            self.assertEqual((result.status, result.err.count("\n")), (1, 1), result.err)
            self.assertIn("--help", result.err)
        self.assertIn("rocksort-columns2sam x.parquet | samtools rocksort",
                      self.script("--help").out.decode())

    def test_output_that_fails(self):
        """A reader that goes is no error to tell; a full disk is."""
        _, table = self.source(generate.odd(3000, seed=2))
        path = self.save(pyarrow.concat_tables([table] * 20))
        command = shlex.join([sys.executable, str(SCRIPT), path])
        done = self.run_program(["bash", "-c", f"{command} | head -n 1"])
        self.assertEqual((done.status, done.err), (0, ""))
        done = self.run_program(["bash", "-c", f"{command} > /dev/full"])
        self.assertEqual((done.status, done.err.count("\n")), (1, 1), done.err)
        self.assertIn("No space left", done.err)


class Rocksort(Back):
    """rocksort is given columns as input."""

    def test_its_message_has_a_command_that_works(self):
        bam = self.bam_of(TAGGED)
        want = self.sort_bam("-o", "-", bam)
        (self.work / "bin").mkdir()
        os.symlink(SCRIPT, self.work / "bin/rocksort-columns2sam")
        path = os.pathsep.join([self.path("bin"), str(BUILD), os.path.dirname(sys.executable),
                                os.environ["PATH"]])
        for form in FORMS:
            source = self.path("it's mine." + form)
            self.sort_ok("--no-PG", "-o", source, bam)
            for args in [], ["--verify"], ["--plan"], ["--checksum-only"], ["--merge", bam]:
                out = ["-o", self.path("o.bam")] if args in ([], ["--merge", bam]) else []
                result = self.rocksort(*args, *out, source)
                self.assert_error(result, "is Arrow or Parquet", "rocksort-columns2sam")
            command = re.search(r"rocksort-columns2sam .*", result.err).group(0)
            done = self.run_program(["bash", "-o", "pipefail", "-c", command],
                                    env_only=environment(self.scratch, extra={"PATH": path}))
            self.assertEqual(done.status, 0, done.err)
            self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
            data = bytes_of(source)
            self.assert_error(self.rocksort("-o", self.path("o.bam"), "-", stdin=data),
                              "'standard input' is Arrow or Parquet", "rocksort-columns2sam FILE |")
