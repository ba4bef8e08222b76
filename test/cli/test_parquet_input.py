"""Parquet as input: what rocksort has written comes back byte for byte, and so does what pyarrow,
Polars and DuckDB have read and written again, however they store it; damaged files are refused."""

import contextlib
import functools
import gzip
import http.server
import os
import random
import struct
import threading
import unittest

import bamfile
import generate
import parquet_maker as maker
from harness import SAMTOOLS, SLOW, SPILL_BUDGET, sanitized
from test_columns import SQ, TAGGED, ColumnsTest, SharedWayBack, needs_readers
from test_memory import MIB, peak_of
from test_parquet import random_sam
from test_plan import CLOSING, PlanTest

try:
    import duckdb
    import polars
    import pyarrow
    import pyarrow.compute
    import pyarrow.parquet
except ImportError:
    pyarrow = None


class ParquetInput(SharedWayBack, ColumnsTest):
    FORM, FORMS = "parquet", ("parquet",)

    def source_table(self, bam):
        """The table of a BAM's records, which is also in in.parquet, and its BAM."""
        path = self.path("in.parquet")
        self.sort_ok("--no-PG", "-o", path, bam)
        self.want = self.sort_bam("--no-PG", "-o", "-", bam)
        return pyarrow.parquet.read_table(path)

    def assert_reads(self, path, what=""):
        """The file gives the records of source_table."""
        self.assert_same_bam(self.sort_bam("--no-PG", "-o", "-", path), self.want, what)

    def written(self, table, name="x.parquet", **how):
        """A file that pyarrow writes."""
        path = self.path(name)
        pyarrow.parquet.write_table(table, path, **how)
        return path


class WayBack(ParquetInput):
    """Files of rocksort; the tests of SharedWayBack, too."""

    def test_random_records(self):
        for seed in range(12):
            for n_records in (1, 9, 700):
                with self.subTest(seed=seed, n_records=n_records):
                    self.source_table(self.bam_of(random_sam(n_records, seed)))
                    self.assert_reads(self.path("in.parquet"))

    def test_columns_of_own(self):
        """Tags that no standard defines have columns of all types."""
        kinds = "A:A,Z:Z,H:H,i:i,f:f,a:B:c,b:B:C,s:B:s,t:B:S,j:B:i,u:B:I,g:B:f".split(",")
        bam = self.bam_of(random_sam(500, seed=99).replace("\tXa:", "\tXA:"))
        path = self.path("x.parquet")
        want = self.sort_bam("--no-PG", "-o", "-", bam)
        for letter in "abc":
            for kind in kinds:
                self.sort_ok("--no-PG", "--columns", f"all,X{letter}:{kind[2:]}", "-o", path, bam)
                self.assert_same_bam(self.sort_bam("--no-PG", "-o", "-", path), want, kind)

    def test_many_records(self):
        """Several groups of several pages, read in several pieces, with spills."""
        rng = random.Random(5)
        lines = [f"r{i}\t0\tc\t{1 + rng.randrange(90000)}\t{rng.choice([0, 60])}\t4M\t*\t0\t"
                 f"{rng.randint(-900, 900)}\tACGT\t{rng.choice(['IIII', 'FFFF'])}\t"
                 f"NM:i:{rng.choice([0, 1])}\tML:B:C,{i % 256},1\tXX:Z:{i % 50}\tMD:Z:{i}"
                 for i in range(50000)]
        bam = self.bam_of(SQ + "\n".join(lines) + "\n")
        table = self.source_table(bam)
        self.assert_reads(self.path("in.parquet"))
        self.sort_ok("--no-PG", "-n", "-o", self.path("n.parquet"), bam, budget=4 * SPILL_BUDGET)
        self.assertGreater(pyarrow.parquet.ParquetFile(self.path("n.parquet")).num_row_groups, 1)
        got, want = self.path("got.bam"), self.path("want.bam")
        for options in (["-n"], ["-t", "NM", "-n"]):
            self.sort_ok("--no-PG", *options, "-o", want, bam)
            self.sort_ok("--no-PG", *options, "-o", got, self.path("n.parquet"),
                         budget=SPILL_BUDGET)
            self.assert_same_bam(bamfile.read(got), bamfile.read(want), options)
        self.assertEqual(table.num_rows, 50000)

    def test_large_rows(self):
        seq = "ACGT" * 400000
        lines = [f"a{i}\t0\tc\t{i + 1}\t9\t4M\t*\t0\t0\tACGT\tIIII\tML:B:C,{i},7"
                 for i in range(40)]
        lines[20] = (f"l\t0\tc\t21\t9\t{len(seq)}M\t*\t0\t0\t{seq}\t{'5' * len(seq)}\tML:B:C" +
                     ",9" * 2000000)
        lines[30] = "cigar\t0\tc\t31\t9\t" + "1M1I" * 40000 + "\t*\t0\t0\t" + "A" * 80000 + "\t*"
        table = self.source_table(self.bam_of(SQ + "\n".join(lines) + "\n"))
        self.assert_reads(self.path("in.parquet"))
        self.assert_reads(self.written(table, data_page_size=1000))

    def test_ways_to_read(self):
        """As standard input that is a file, with --merge, beside BAM and Arrow, and by the commands
        that write no BAM."""
        bam = self.bam_of(TAGGED)
        self.source_table(bam)
        path = self.path("in.parquet")
        with open(path, "rb") as file:
            self.assert_same_bam(self.sort_bam("--no-PG", "-o", "-", "-", stdin=file), self.want)
        self.assert_same_bam(self.sort_bam("--no-PG", "--merge", "-o", "-", path), self.want)
        self.sort_ok("--no-PG", "-o", self.path("a.arrow"), path)
        n_records = len(bamfile.split(self.want.records))
        three = self.sort_bam("--no-PG", "-o", "-", bam, path, self.path("a.arrow"))
        self.assertEqual(len(bamfile.split(three.records)), 3 * n_records)
        merged = self.sort_bam("--no-PG", "--merge", "-o", "-", path, self.path("a.arrow"))
        self.assertEqual(len(bamfile.split(merged.records)), 2 * n_records)
        sums = [self.sort_ok("--checksum-only", one).out for one in (bam, path)]
        self.assertEqual(*sums)
        self.sort_ok("--verify", path)
        self.sort_ok("--plan", path)
        stats = [self.path("1.json"), self.path("2.json")]
        for one, report in zip((bam, path), stats):
            self.sort_ok("--flagstat", report, "-o", self.path("x.bam"), one)
        self.assertEqual(*(open(report, encoding="ascii").read() for report in stats))
        self.sort_ok("--no-PG", "-o", self.path("again.parquet"), path)
        with open(path, "rb") as a, open(self.path("again.parquet"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_resume(self):
        """A sort of Parquet that fails in its merge goes on from its checkpoint; one that fails
        before has none."""
        bam = self.source(3000)
        self.source_table(bam)
        checkpoint = self.fails_in_merge(self.path("in.parquet"))
        self.resume(checkpoint, "-o", self.path("got.bam"))
        want = self.sort_bam("-o", "-", bam)
        self.assertEqual(bamfile.read(self.path("got.bam")).records, want.records)

    def test_pipe(self):
        """The end of a pipe cannot be read first, and the message says so."""
        self.source_table(self.bam_of(TAGGED))
        with open(self.path("in.parquet"), "rb") as file:
            data = file.read()
        result = self.rocksort("-o", self.path("o.bam"), "-", stdin=data)
        self.assert_error(result, "standard input", "no pipe", "name a file")
        self.assertFalse(os.path.exists(self.path("o.bam")))


class FileServer(http.server.SimpleHTTPRequestHandler):
    """Serves a file, or the part of it that is asked for."""

    parts = True
    requests = []

    def log_message(self, *args):
        pass

    def do_GET(self):
        with open(os.path.join(self.directory, self.path.strip("/")), "rb") as file:
            data = file.read()
        asked, first = self.headers.get("Range"), 0
        self.requests.append(asked)
        if asked and self.parts:
            first = int(asked.removeprefix("bytes=").split("-")[0])
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data) - first))
        if self.parts:
            self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        with contextlib.suppress(OSError):      # who has seen enough goes
            self.wfile.write(data[first:])


class Url(ParquetInput):
    def served(self, parts):
        """The URL of in.parquet."""
        kind = type("Kind", (FileServer,), {"parts": parts, "requests": []})
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(kind, directory=str(self.work)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.requests = kind.requests
        return f"http://127.0.0.1:{server.server_address[1]}/in.parquet"

    def test_url(self):
        """A server that gives parts of files is asked for few of them."""
        self.source_table(self.bam_of(TAGGED))
        self.assert_reads(self.served(parts=True))
        self.assertLess(len(self.requests), 8)
        self.refused(self.served(parts=False), "not all servers", "name a file")


class Writers(ParquetInput):
    """Files that other programs have written of those of rocksort."""

    def setUp(self):
        super().setUp()
        sam = random_sam(900, seed=3) + TAGGED.removeprefix(SQ)
        self.table_of_all = self.source_table(self.bam_of(sam))

    def test_pyarrow_codecs(self):
        for codec in ("none", "snappy", "gzip", "zstd", "lz4"):
            for version in ("1.0", "2.0"):
                for how in ({}, {"use_dictionary": False}, {"write_page_checksum": True}):
                    with self.subTest(codec=codec, version=version, how=how):
                        self.assert_reads(self.written(
                            self.table_of_all, compression=codec, data_page_version=version, **how))

    def test_pyarrow_pages(self):
        """Rows that begin on one page and end on another, small groups, an old format."""
        for how in ({"data_page_size": 64}, {"row_group_size": 7}, {"max_rows_per_page": 3},
                    {"row_group_size": 100, "data_page_size": 300, "data_page_version": "2.0"},
                    {"version": "1.0"}, {"dictionary_pagesize_limit": 500},
                    {"write_page_index": True},
                    {"use_compliant_nested_type": False}):
            with self.subTest(how=how):
                self.assert_reads(self.written(self.table_of_all, **how))

    def test_pyarrow_encodings(self):
        texts = [field.name for field in self.table_of_all.schema if str(field.type) == "string"]
        numbers = [field.name for field in self.table_of_all.schema if "int" in str(field.type) and
                   not str(field.type).startswith(("list", "dictionary"))]
        lists = [f"{field.name}.list.element" for field in self.table_of_all.schema
                 if str(field.type).startswith("list<") and "int" in str(field.type)]
        parts = ["tags.key_value.key", "tags.key_value.value"]
        for text_encoding in ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"):
            for number_encoding in ("PLAIN", "DELTA_BINARY_PACKED"):
                for more in ({}, {"data_page_version": "2.0"}, {"data_page_size": 64}):
                    encodings = dict.fromkeys(texts + parts, text_encoding)
                    encodings |= dict.fromkeys(numbers + lists, number_encoding)
                    with self.subTest(encodings={text_encoding, number_encoding}, more=more):
                        path = self.written(self.table_of_all, use_dictionary=False,
                                            column_encoding=encodings, **more)
                        used = pyarrow.parquet.ParquetFile(path).metadata.row_group(0)
                        self.assertIn(text_encoding, used.column(0).encodings)
                        self.assertIn(number_encoding, used.column(1).encodings)
                        self.assert_reads(path)

    def test_pyarrow_types(self):
        """Integers of other widths, numbers with a fraction of 64 bits, maps that are lists."""
        table = self.table_of_all
        text = pyarrow.string()
        pairs = pyarrow.list_(pyarrow.struct([("key", text), ("value", text)]))
        changes = [dict.fromkeys(("flag", "pos", "end", "mapq", "pnext", "tlen"), pyarrow.int64()),
                   {"flag": pyarrow.int32(), "mapq": pyarrow.uint64(), "pos": pyarrow.uint32()},
                   {"qname": pyarrow.large_string(), "seq": pyarrow.large_binary()},
                   {"cigar": pyarrow.dictionary(pyarrow.int32(), text)},
                   {"NM": pyarrow.int16()}, {"tags": pairs}]
        for change in changes:
            with self.subTest(change=change):
                other = table
                for name, kind in change.items():
                    at = table.schema.get_field_index(name)
                    other = other.set_column(at, name, table[name].cast(kind))
                other = other.replace_schema_metadata(table.schema.metadata)
                self.assert_reads(self.written(other))
        reverse = table.select(table.column_names[::-1])
        self.assert_reads(self.written(reverse))

    def test_pyarrow_fractions(self):
        bam, path = self.bam_of(random_sam(300, seed=99)), self.path("f.parquet")
        want = self.sort_bam("--no-PG", "-o", "-", bam)
        self.sort_ok("--no-PG", "--columns", "all,Xa:f,Xb:B:f", "-o", path, bam)
        table = pyarrow.parquet.read_table(path)
        for name, kind in (("Xa", pyarrow.float64()), ("Xb", pyarrow.list_(pyarrow.float64()))):
            table = table.set_column(table.schema.get_field_index(name), name,
                                     table[name].cast(kind))
        got = self.sort_bam("--no-PG", "-o", "-", self.written(table))
        self.assert_same_bam(got, want)

    def test_filtered(self):
        some = self.table_of_all.filter(pyarrow.compute.greater(self.table_of_all["mapq"], 30))
        got = self.sort_bam("-o", "-", self.written(some))
        self.assertEqual(len(bamfile.split(got.records)), some.num_rows)
        none = self.table_of_all.slice(0, 0)
        self.assertEqual(self.sort_bam("-o", "-", self.written(none)).records, b"")

    def test_polars(self):
        metadata = polars.read_parquet_metadata(self.path("in.parquet"))
        metadata.pop("ARROW:schema", None)
        out, frame = self.path("p.parquet"), polars.scan_parquet(self.path("in.parquet"))
        for codec in ("uncompressed", "snappy", "gzip", "zstd", "lz4"):
            for how in ({}, {"row_group_size": 100}, {"data_page_size": 200}):
                with self.subTest(codec=codec, how=how):
                    frame.collect().write_parquet(out, compression=codec, metadata=metadata, **how)
                    self.assert_reads(out)
                    frame.sink_parquet(out, compression=codec, metadata=metadata, **how)
                    self.assert_reads(out)

    def test_duckdb(self):
        source, out = self.path("in.parquet"), self.path("d.parquet")
        database = duckdb.connect()
        database.sql("set variable old = (select map_from_entries(list((decode(key), "
                     f"decode(value)))) from parquet_kv_metadata('{source}'))")
        metadata = ("kv_metadata {sam_header: getvariable('old')['sam_header'], "
                    "rocksort_columns: getvariable('old')['rocksort_columns']}")
        for codec in ("uncompressed", "snappy", "gzip", "zstd", "lz4_raw"):
            for version in ("v1", "v2"):
                for size in (100, 100000):
                    with self.subTest(codec=codec, version=version, size=size):
                        database.sql(f"copy (from '{source}') to '{out}' (format parquet, "
                                     f"{metadata}, codec {codec}, parquet_version {version}, "
                                     f"row_group_size {size})")
                        self.assert_reads(out)
        database.sql(f"copy (select * replace (map_entries(tags) as tags) from '{source}') "
                     f"to '{out}' (format parquet, {metadata})")
        self.assert_reads(out)

    def test_unknown_columns(self):
        """Columns that no record has are left out, whatever their type, with a warning."""
        table = self.source_table(self.bam_of(TAGGED))
        n = table.num_rows
        numbers = pyarrow.array(range(n))
        lists = pyarrow.array([[[1], [2, 3]]] * n)
        for column in (numbers, numbers.cast("int32").cast("date32"),
                       numbers.cast(pyarrow.decimal128(20)),
                       numbers.cast(pyarrow.timestamp("us")), numbers.cast(pyarrow.bool_()),
                       pyarrow.array([b"1234"] * n, pyarrow.binary(4)), lists,
                       pyarrow.array([{"a": 1, "b": "x", "c": {"d": 2, "e": None}}] * n),
                       pyarrow.array([[{"a": 1, "b": 2, "c": 3}]] * n)):
            for name, at in ("contig", 3), ("1X", table.num_columns), ("a", 0):
                path = self.written(table.add_column(at, name, column), row_group_size=100)
                result = self.sort_ok("--no-PG", "-o", self.path("o.bam"), path)
                self.assert_same_bam(bamfile.read(self.path("o.bam")), self.want, column.type)
                self.assertEqual(result.err.count(f"such as '{name}'"), 1)
        # Each file is warned of once, however often it is read.
        for options in [], ["--merge"], ["--merge", "--markdup=-S"]:
            result = self.sort_ok(*options, "-o", self.path("o.bam"), path, path)
            self.assertEqual(result.err.count("such as 'a'"), 2, options)
        result = self.sort_ok("--merge", "--markdup=-S", "-o", self.path("o.bam"), path)
        self.assertEqual(result.err.count("such as 'a'"), 1)
        self.assert_reads(self.written(table.drop_columns("end")))
        # One that is not read may be stored in any way, and a tag be there that no record has.
        compression = {name: "zstd" for name in table.column_names if name != "ML"}
        compression["ML.list.element"] = "zstd"
        self.assert_reads(self.written(table.append_column("contig", table["qname"]),
                                       compression={**compression, "contig": "brotli"}))
        self.assert_reads(self.written(table.append_column("XQ", table["pos"])))
        deep = pyarrow.array([[[[[[[1]]]]]]] * n)
        self.assert_reads(self.written(table.append_column("deep", deep)))
        # A large one does not count as part of the rows.
        large = pyarrow.array(["x" * 100000 + str(i) for i in range(n)])
        self.assert_reads(self.written(table.append_column("large", large)))

    def test_partitioned_set(self):
        """DuckDB adds a column for the name of the directory."""
        bam = self.bam_of(TAGGED)
        self.source_table(bam)
        os.mkdir(self.path("set"))
        self.sort_ok("--no-PG", "--split-by", "contig", "-o",
                     self.path("set/contig=%/part-0.parquet"), bam)
        header = self.write("header.sam", bamfile.read(bam).text)
        duckdb.sql(f"copy (from read_parquet('{self.path('set')}/*/*.parquet', "
                   f"hive_partitioning = true)) to '{self.path('all.parquet')}' (format parquet)")
        got = self.sort_bam("--no-PG", "-n", "-o", "-", header, self.path("all.parquet"))
        self.assert_same_bam(got, self.sort_bam("--no-PG", "-n", "-o", "-", bam))

    def test_lent_header(self):
        """Metadata that Polars, DuckDB and pyarrow have dropped: the header is that of the first
        input, as doc/columns.md says."""
        bam = self.bam_of(TAGGED)
        table = self.source_table(bam)
        header = self.write("header.sam", bamfile.read(bam).text)
        want = self.sort_bam("--no-PG", "-o", "-", self.path("in.parquet"))
        bare = [self.path(name) for name in ("p.parquet", "d.parquet", "a.parquet")]
        polars.scan_parquet(self.path("in.parquet")).sink_parquet(bare[0])
        duckdb.sql(f"copy (from '{self.path('in.parquet')}') to '{bare[1]}' (format parquet)")
        pyarrow.parquet.write_table(table.replace_schema_metadata({}), bare[2])
        for one in bare:
            for first, options in (header, []), (header, ["--merge"]):
                got = self.sort_bam("--no-PG", *options, "-o", "-", first, one)
                self.assert_same_bam(got, want, (one, options))
        # Who has lost the header does not say that it is sorted.
        for second, is_told in (self.path("in.parquet"), True), (bare[0], False):
            result = self.sort_ok("-o", self.path("o.bam"), self.path("in.parquet"), second)
            self.assertEqual("all inputs say that they are in this order" in result.err, is_told)
        four = self.sort_bam("--no-PG", "-o", "-", bam, *bare)
        self.assert_same_bam(four, self.sort_bam("--no-PG", "-o", "-", *[bam] * 4))


@needs_readers
class Plans(PlanTest):
    def test_columns(self):
        """Columns as input take memory from batches, so there are more runs: twice as many as once
        were planned. A first input may have only the header for the others."""
        header = self.write("header.sam", bamfile.read(self.source).text)
        bare = self.path("bare.parquet")
        self.sort_ok("-n", "-o", self.path("in.parquet"), self.source)
        self.sort_ok("-n", "-o", self.path("in.arrow"), self.source)
        pyarrow.parquet.write_table(pyarrow.parquet.read_table(self.path("in.parquet"))
                                    .replace_schema_metadata({}), bare)
        for inputs in ([self.path("in.parquet")], [self.path("in.arrow")], [header, bare]):
            args = ("-l", "1", "--temp-codec", "lz4", "-o", self.path("out.bam"), *inputs)
            plan = self.plan(*args, budget=2_000_000)
            found = CLOSING.search(self.sort_ok(*args, budget=2_000_000).err)
            os.unlink(self.path("out.bam"))
            n_runs, planned = int(found.group(2)), int(plan["runs on disk"][0].split(",")[0])
            self.assertGreater(n_runs, 4)
            self.assertLessEqual(abs(planned - n_runs), max(2, n_runs / 3), (inputs, planned))


class Refused(ParquetInput):
    def setUp(self):
        super().setUp()
        self.table_of_all = self.source_table(self.bam_of(TAGGED))

    def changed(self, name, values):
        """A file in which a column has other values."""
        table = self.table_of_all
        other = table.set_column(table.schema.get_field_index(name), name, values)
        return self.written(other.replace_schema_metadata(table.schema.metadata))

    def test_other_columns(self):
        table = self.table_of_all
        self.refused(self.written(table.drop_columns(["seq", "cigar"])),
                     "does not have: cigar, seq")
        self.refused(self.changed("pos", table["pos"].cast("string")),
                     "column 'pos' has a type that")
        self.refused(self.changed("NM", table["NM"].cast("date64")), "column 'NM' has a type that")
        self.refused(self.changed("ML", pyarrow.array([[[1]]] * table.num_rows)),
                     "column 'ML' has a type that")
        twice = table.append_column("pos", table["pos"])
        self.refused(self.written(twice), "column 'pos' is there twice")
        self.refused(self.changed("tags", table["qname"]), "column 'tags' has a type")
        n = table.num_rows
        self.refused(self.changed("tag_types", pyarrow.array(["NM:i"] * n)), "tag_types")
        holes = pyarrow.array([[1, None]] * n, pyarrow.list_(pyarrow.uint8()))
        self.refused(self.changed("ML", holes), "its column 'ML' has a null in a list or a map")
        self.refused(self.changed("rname", pyarrow.array(["e"] * n)), "column 'rname'", "reference")
        self.refused(self.changed("rname", pyarrow.array([""] * n)), "a reference that")

    def test_letters_of_a_tag(self):
        """NM with its highest bits set is not NM."""
        table = self.table_of_all
        self.table_of_all = table.filter(pyarrow.compute.is_valid(table["NM"]))
        letters = pyarrow.array([b"\xce\xcd:i"] * self.table_of_all.num_rows, "binary")
        self.refused(self.changed("tag_types", letters), "tag_types")

    def test_numbers_that_do_not_fit(self):
        n = self.table_of_all.num_rows
        for name, value, kind in (("flag", 65536, "int32"), ("flag", -1, "int32"),
                                  ("mapq", 256, "uint16"), ("pos", 2**31, "int64"),
                                  ("tlen", -2**31 - 1, "int64"), ("NM", 2**63, "uint64"),
                                  ("pos", 2**32 - 1, "uint32")):
            with self.subTest(name=name, value=value):
                self.refused(self.changed(name, pyarrow.array([value] * n, kind)),
                             f"its column '{name}' has a value that does not fit")

    def test_no_metadata(self):
        """The message says what is missing, and what to do."""
        for metadata in {}, {"rocksort_columns": "1"}:
            self.refused(self.written(self.table_of_all.replace_schema_metadata(metadata)),
                         "have no sam_header", "as the first input")
        bare = self.written(self.table_of_all.replace_schema_metadata({}))
        other = self.write("other.sam", "@SQ\tSN:e\tLN:9\n")
        self.assert_error(self.rocksort("-o", self.path("o.bam"), other, bare), bare,
                          "column 'rname'", "header does not have")
        metadata = dict(self.table_of_all.schema.metadata)
        metadata[b"rocksort_columns"] = b"2"
        self.refused(self.written(self.table_of_all.replace_schema_metadata(metadata)), "version")
        metadata = dict(self.table_of_all.schema.metadata, sam_header=b"@SQ\tSN\n")
        self.refused(self.written(self.table_of_all.replace_schema_metadata(metadata)))

    def test_ways_to_store(self):
        """An encoding or a codec that is not read is named."""
        self.refused(self.written(self.table_of_all, compression="brotli"), "Brotli")
        path = self.written(self.table_of_all, use_dictionary=False,
                            column_encoding={"pos": "BYTE_STREAM_SPLIT"})
        self.refused(path, "BYTE_STREAM_SPLIT")

    def data(self, path="in.parquet"):
        with open(self.path(path), "rb") as file:
            return bytearray(file.read())

    def test_ends(self):
        data = self.data()
        self.refused(self.write("e.parquet", data[:-4] + b"PARE"), "encrypted")
        self.refused(self.write("e.parquet", data[:-4] + b"PAR2"), "truncated or damaged")
        self.refused(self.write("e.parquet", data[:-8] + b"\xff\xff\xff\x7fPAR1"), "damaged")
        self.refused(self.write("e.parquet", data[:-8] + bytes(4) + b"PAR1"), "damaged")
        self.refused(self.write("e.parquet", b"PAR1PAR1"), "truncated")
        self.refused(self.write("e.parquet", b"PAR1" * 3), "damaged")

    def test_checksum(self):
        """A byte that is wrong in a page of rocksort's is found by the checksum."""
        data = self.data()
        data[4 + 200] ^= 1
        self.refused(self.write("bad.parquet", data), "checksum")

    def test_damaged(self):
        """Cut off anywhere: an error. With a byte changed: an error or some records; no crash."""
        rng = random.Random(1)
        self.written(self.table_of_all, compression="none", data_page_size=300)
        for name in ("in.parquet", "x.parquet"):
            data = self.data(name)
            for _ in range(60 if SLOW == 1 else 20):
                at = rng.randrange(len(data))
                self.refused(self.write("cut.parquet", data[:max(at, 8)]))
                near_end = rng.random() < 0.5
                at = len(data) - 1 - rng.randrange(len(data) // 4) if near_end else at
                changed = bytearray(data)
                changed[at] ^= 1 << rng.randrange(8)
                result = self.rocksort("-o", self.path("o.bam"), self.write("bad.parquet", changed))
                self.assertIn(result.status, (0, 1), result.err)
                if result.status == 0:
                    os.unlink(self.path("o.bam"))


class Claims(ParquetInput):
    """Files of which a few bytes say that they are many."""

    def made(self, n, chunks, codec=maker.ZSTD):
        return self.write("made.parquet", maker.file_of(n, chunks, codec))

    def test_empty_values(self):
        """Of no values, some programs store nothing, others what their codec makes of it."""
        nulls = maker.runs((0, 5))
        for codec, values in ((1, b"\0"), (2, gzip.compress(b"")), (maker.ZSTD, b""),
                              (maker.ZSTD, maker.zeros(0)), (7, b"\0")):
            with self.subTest(codec=codec):
                path = self.made(5, {"cigar": maker.page_v2(5, nulls, values, 0)}, codec)
                got = self.sort_bam("-o", "-", path)
                self.assertEqual(len(bamfile.split(got.records)), 5)

    def test_numbers_that_are_null(self):
        for name in ("flag", "mapq", "tlen"):
            self.refused(self.made(5, {name: maker.page(5, [maker.runs((0, 5))])}, maker.NONE),
                         "is null")

    def test_rows(self):
        """A page has no more values than its header can say."""
        self.refused(self.made(10**18, {}), "damaged")

    def test_pages(self):
        """All columns together have 2 GiB for pages and dictionaries."""
        there = maker.runs((1, 1))
        small, large = (maker.page_v2(1, there, maker.zeros(n), n) for n in (200 << 20, 1900 << 20))
        self.refused(self.made(1, {"X0": small, "X1": large}), "smaller pages")
        n_bytes = 500 << 20         # a text takes more memory than it has bytes
        many = maker.dictionary(n_bytes // 4, maker.zeros(n_bytes), n_bytes)
        self.refused(self.made(1, {"X0": many}), "smaller pages")

    @unittest.skipIf(os.access(SAMTOOLS, os.R_OK) and sanitized(), "a sanitizer's memory is not ours")
    def test_repeated_texts(self):
        """Memory that one column needed for some rows does not stay there for all others."""
        piece, n_bytes, n_columns = 1 << 14, 20000, 6
        n = piece * n_columns
        text = struct.pack("<I", n_bytes) + b"A" * n_bytes
        chunks = {}
        for i in range(n_columns):
            levels = maker.runs(*((v, k) for v, k in ((0, i * piece), (1, piece),
                                                      (0, n - (i + 1) * piece)) if k))
            chunks[f"X{i}"] = maker.dictionary(1, text) + maker.page(
                n, [levels], b"\1" + maker.runs((0, piece)), maker.RLE_DICTIONARY)
        path = self.made(n, chunks, maker.NONE)
        peak, _ = peak_of(self, ["-o", self.path("o.bam"), path])
        self.assertLess(peak, 3 * piece * n_bytes, f"{peak / MIB:.1f} MiB")

    def test_end(self):
        """What stands at the end of a file is not read into memory if it cannot be a footer."""
        path = self.path("sparse.parquet")
        with open(path, "wb") as file:
            file.write(b"PAR1")
            file.seek(1 << 33)
            file.write(b"\xf0\xff\xff\xffPAR1")
        self.refused(path, "larger than 1 GiB")


if __name__ == "__main__":
    unittest.main()
