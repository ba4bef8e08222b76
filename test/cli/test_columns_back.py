"""Columns that other programs have filtered, converted or laid out anew come back as the records of
which rocksort made them, byte for byte.
What cannot come back is refused, and the message says why."""

import os
import unittest

import bamfile
import generate
from test_columns import SQ, TAGGED, ColumnsTest
from workflow_reads import templates, write_sam

try:
    import duckdb
    import polars
    import pyarrow
    import pyarrow.compute
    import pyarrow.feather
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError:
    pyarrow = None

CODECS = (None, "lz4", "zstd")
# Readers take columns and fields of structs in any order, but for the two of a map.
TEXTS = ("qname", "cigar", "seq", "qual", "MD", "RG", "TS", "tag_types")


def cast(table, name, to):
    """The table with another type for a column: a type, or what makes an array of an array."""
    i = table.schema.get_field_index(name)
    chunks = [to(chunk) if callable(to) else chunk.cast(to) for chunk in table.column(i).chunks]
    return table.set_column(i, name, pyarrow.chunked_array(chunks))


LIST_KINDS = ("list", "large_list", "list_view", "large_list_view")


def as_lists(kind, lists, values):
    """The lists of an array as those of another kind, with other values in them."""
    make = getattr(pyarrow, "".join(word.title() for word in kind.split("_")) + "Array")
    offsets = lists.offsets.cast(pyarrow.int64() if "large" in kind else pyarrow.int32())
    if "view" not in kind:
        return make.from_arrays(offsets, values, mask=lists.is_null())
    sizes = pyarrow.compute.subtract(offsets[1:], offsets[:-1])
    return make.from_arrays(offsets[:-1], sizes, values, mask=lists.is_null())


def as_structs(kind):
    """Makes lists of structs of maps."""
    return lambda maps: as_lists(kind, maps, pyarrow.StructArray.from_arrays(
        [maps.keys, maps.items], names=["key", "value"]))


class Back(ColumnsTest):
    """Writes tables and compares the checksum of their records with that of BAM."""

    def source(self):
        """A BAM file with many tags, and its table."""
        return self.source_of(TAGGED, "tagged")

    def odd_source(self):
        """A BAM file with records of all kinds, and its table."""
        return self.source_of(generate.odd(1500, seed=11), "odd")

    def source_of(self, sam, name):
        bam = self.bam_of(sam, name=name + ".bam")
        self.sort_ok("--no-PG", "-o", self.path(name + ".arrow"), bam)
        return bam, self.read(self.path(name + ".arrow"))

    def save(self, table, name="x.arrow", rows=None, codec=None, **options):
        """Writes a file, or a stream if the name says so, in batches of so many rows."""
        path = self.path(name)
        options = pyarrow.ipc.IpcWriteOptions(compression=codec, **options)
        make = pyarrow.ipc.new_stream if name.endswith("s") else pyarrow.ipc.new_file
        with pyarrow.OSFile(path, "wb") as file:
            with make(file, table.schema, options=options) as writer:
                writer.write_table(table, max_chunksize=rows)
        return path

    def checksum(self, *paths):
        result = self.sort_ok("--checksum-only", *paths)
        self.assertEqual(result.err, "")
        return result.out

    def assert_comes_back(self, bam, *paths, what=""):
        self.assertEqual(self.checksum(*paths), self.checksum(bam), what)

    def header_of(self, bam):
        """A file with the header of a BAM file, and no records."""
        header = bamfile.read(bam).text
        return self.write("header.sam", header)

    def refused(self, paths, *mentions):
        result = self.rocksort("-o", self.path("o.bam"), *paths)
        self.assert_error(result, *mentions)
        self.assertFalse(os.path.exists(self.path("o.bam")))


class PyArrow(Back):
    def test_texts(self):
        bam, table = self.source()
        indexes = [getattr(pyarrow, f"{sign}int{bits}")() for sign in ("", "u")
                   for bits in (8, 16, 32, 64)]
        types = [pyarrow.large_string(), pyarrow.string_view()]
        types += [pyarrow.dictionary(index, pyarrow.string()) for index in indexes]
        types += [pyarrow.dictionary(pyarrow.int32(), pyarrow.large_string()),
                  lambda array: pyarrow.DictionaryArray.from_arrays(
                      array.dictionary_encode().indices,
                      array.dictionary_encode().dictionary.cast(pyarrow.string_view()))]
        for to in types:
            for codec in CODECS:
                changed = table
                for name in TEXTS:
                    small = not callable(to) and str(to).startswith("dictionary") and "8" in str(to)
                    if not small or name in ("cigar", "seq", "TS"):
                        changed = cast(changed, name, to)
                self.assert_comes_back(bam, self.save(changed, codec=codec), what=(to, codec))

    def test_references(self):
        bam, table = self.source()
        for to in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view(),
                   pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
                   pyarrow.dictionary(pyarrow.uint64(), pyarrow.large_string())):
            changed = table
            for name in ("rname", "rnext"):
                plain = cast(changed, name, pyarrow.string())
                changed = cast(plain, name, to)
            self.assert_comes_back(bam, self.save(changed), what=to)

    def test_entries_of_dictionaries(self):
        """Entries may be null, in any order, there twice, and of no use."""
        bam, table = self.source()
        words = pyarrow.array(["d", None, "nowhere", "c", "d"])

        def change(array):
            numbers = [1 if name is None else 3 if name == "c" else 4 * (i % 2)
                       for i, name in enumerate(array.to_pylist())]
            return pyarrow.DictionaryArray.from_arrays(pyarrow.array(numbers), words)
        self.assert_comes_back(bam, self.save(cast(cast(table, "rname", change), "rnext", change)))
        nowhere = pyarrow.DictionaryArray.from_arrays(pyarrow.array([2] * len(table)), words)
        self.refused([self.save(cast(table, "rname", lambda array: nowhere))],
                     "column 'rname'", "header does not have")

    def test_dictionaries_that_change(self):
        """A stream replaces and extends its dictionaries."""
        bam, table = self.odd_source()
        for rows in (7, 400):
            chunks = []
            for batch in table.to_batches(max_chunksize=rows):
                for name in ("rname", "rnext", "qname", "cigar", "RG"):
                    i = batch.schema.get_field_index(name)
                    if i >= 0:
                        texts = batch.column(i).cast(pyarrow.string())
                        batch = batch.set_column(i, name, texts.dictionary_encode())
                chunks.append(batch)
            changed = pyarrow.Table.from_batches(chunks)
            for deltas in (False, True):
                self.assert_comes_back(bam, self.save(changed, "x.arrows", codec="lz4",
                                                      emit_dictionary_deltas=deltas))
                self.assert_comes_back(bam, self.save(changed.unify_dictionaries(),
                                                      emit_dictionary_deltas=deltas))
        # Each batch adds entries to the dictionary of the one before.
        names, chunks = table.column("qname").to_pylist(), []
        for end in range(100, len(names) + 100, 100):
            known = list(dict.fromkeys(names[:end]))
            place = {name: i for i, name in enumerate(known)}
            chunks.append(pyarrow.DictionaryArray.from_arrays(
                pyarrow.array([place[name] for name in names[end - 100:end]]), known))
        i = table.schema.get_field_index("qname")
        changed = table.set_column(i, "qname", pyarrow.chunked_array(chunks))
        for name in ("x.arrow", "x.arrows"):
            self.assert_comes_back(bam, self.save(changed, name, emit_dictionary_deltas=True))

    def test_numbers(self):
        bam, table = self.source()
        for names, to in [
                (("flag", "pos", "mapq", "pnext", "tlen", "NM"), pyarrow.int64()),
                (("flag", "mapq"), pyarrow.int16()), (("flag", "mapq"), pyarrow.uint64()),
                (("pos", "pnext"), pyarrow.uint32()),
                (("pos", "pnext", "NM", "NH"), pyarrow.uint64()),
                (("NM", "NH"), pyarrow.uint8()), (("AS", "tlen", "NM"), pyarrow.int32()),
                (("tlen", "flag"), pyarrow.int8()), (("end",), pyarrow.string())]:
            changed = table
            for name in names:
                changed = cast(changed, name, to)
            self.assert_comes_back(bam, self.save(changed), what=(names, to))

    def test_floats(self):
        bam = self.bam_of(SQ + "".join(f"r{i}\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\tFF:f:{value}\n"
                                       for i, value in enumerate(("0.1", "-1e-40", "inf", "nan"))))
        self.sort_ok("--no-PG", "--columns", "all,FF:f", "-o", self.path("f.arrow"), bam)
        table = self.read(self.path("f.arrow"))
        self.assert_comes_back(bam, self.save(cast(table, "FF", pyarrow.float64())))
        more = cast(table, "FF", lambda array: pyarrow.array([0.1] * len(array)))
        self.refused([self.save(more)], "column 'FF'", "does not fit")

    def test_lists(self):
        bam, table = self.source()
        for kind in LIST_KINDS:
            changed = table
            for name in ("ML", "FZ"):
                changed = cast(changed, name,
                               lambda lists, of=kind: as_lists(of, lists, lists.values))
            for codec in CODECS:
                self.assert_comes_back(bam, self.save(changed, codec=codec), what=kind)
        # The specification says what the elements of a standard tag are.
        wide = cast(cast(table, "ML", pyarrow.list_(pyarrow.int64())), "FZ",
                    pyarrow.large_list(pyarrow.uint64()))
        self.assert_comes_back(bam, self.save(wide))
        self.refused([self.save(cast(wide, "ML", lambda lists: pyarrow.array(
            [[300]] * len(lists))))], "column 'ML'", "does not fit")
        nulls = pyarrow.array([[None]] * len(table), pyarrow.list_(pyarrow.uint8()))
        self.refused([self.save(cast(table, "ML", lambda lists: nulls))],
                     "column 'ML'", "a null in it")

    def test_maps(self):
        bam, table = self.source()
        for kind in LIST_KINDS:
            changed = cast(table, "tags", as_structs(kind))
            self.assertTrue(str(changed.schema.field("tags").type).startswith(kind + "<"))
            for codec in CODECS:
                self.assert_comes_back(bam, self.save(changed, codec=codec), what=kind)
        maps = table.column("tags").combine_chunks()
        views = maps.items.cast(pyarrow.string_view())
        for keys, items in ((maps.keys.cast(pyarrow.large_string()), maps.items),
                            (maps.keys.dictionary_encode(), views)):
            changed = pyarrow.MapArray.from_arrays(maps.offsets, keys, items, mask=maps.is_null())
            changed = cast(table, "tags", lambda array, new=changed: new)
            self.assert_comes_back(bam, self.save(changed))
        bad = pyarrow.array([[("XS", None)]] * table.num_rows, table.schema.field("tags").type)
        self.refused([self.save(cast(table.combine_chunks(), "tags", lambda array: bad))],
                     "column 'tags'", "a null in it")

    def test_nothing(self):
        """A column of which all values are null may have no type."""
        bam = self.bam_of(SQ + "r\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n" * 9)
        self.sort_ok("--no-PG", "--columns", "all,NM,ML,CO,XX:f", "-o", self.path("n.arrow"), bam)
        table = self.read(self.path("n.arrow"))
        for name in table.schema.names:
            if table.column(name).null_count == len(table):
                table = cast(table, name, lambda array: pyarrow.nulls(len(array)))
        self.assertGreater([str(one) for one in table.schema.types].count("null"), 12)
        self.assert_comes_back(bam, self.save(table, rows=4))

    def test_batches(self):
        """Rows in any order and number; slices whose offsets do not begin at 0."""
        bam, table = self.odd_source()
        for name in ("x.arrow", "x.arrows"):
            for rows in (1, 7, 1000):
                for codec in CODECS:
                    self.assert_comes_back(bam, self.save(table, name, rows, codec))
        slices = [table.slice(at, 100) for at in range(0, len(table), 100)]
        self.assert_comes_back(bam, self.save(pyarrow.concat_tables(slices[::-1])))
        self.assert_comes_back(bam, self.save(table.select(table.schema.names[::-1])))
        self.assert_comes_back(bam, self.save(table.drop_columns("end")))

    def test_parquet(self):
        bam, _ = self.odd_source()
        parquet, again = self.path("x.parquet"), self.path("y.parquet")
        self.sort_ok("--no-PG", "-o", parquet, bam)
        for options in ({}, {"read_dictionary": ["rname", "cigar"]}, {"use_threads": False}):
            table = pyarrow.parquet.read_table(parquet, **options)
            self.assert_comes_back(bam, self.save(table), what=options)
        for options in ({"version": "1.0"}, {"version": "2.6", "use_dictionary": False},
                        {"store_schema": False}):
            pyarrow.parquet.write_table(table, again, **options)
            got = pyarrow.parquet.read_table(again)
            if not options.get("store_schema", True):
                got = got.replace_schema_metadata(table.schema.metadata)
            self.assert_comes_back(bam, self.save(got), what=options)


class Polars(Back):
    def test_files(self):
        """Polars drops the metadata: the header is another input."""
        for bam, table in (self.source(), self.odd_source()):
            header, path = self.header_of(bam), self.path("p.arrow")
            for frame in (polars.read_ipc(self.save(table)), polars.from_arrow(table)):
                for codec in ("uncompressed", "lz4", "zstd"):
                    for level in (polars.CompatLevel.newest(), polars.CompatLevel.oldest()):
                        frame.write_ipc(path, compression=codec, compat_level=level)
                        self.assert_comes_back(bam, header, path, what=codec)
                        frame.write_ipc_stream(path, compression=codec, compat_level=level)
                        self.assert_comes_back(bam, header, path, what=codec)
            polars.scan_ipc(self.path("x.arrow")).sink_ipc(path)
            self.assert_comes_back(bam, header, path)

    def test_filter(self):
        bam, table = self.odd_source()
        self.sort_ok("--no-PG", "-o", self.path("x.parquet"), bam)
        kept = table.filter(pyarrow.compute.greater(table["mapq"], 30))
        want = self.checksum(self.save(kept, "want.arrow"))
        for frame in (polars.scan_parquet(self.path("x.parquet")),
                      polars.scan_ipc(self.path("odd.arrow"))):
            some = frame.filter(polars.col("mapq") > 30)
            some.sink_ipc(self.path("p.arrow"))
            self.assertEqual(self.checksum(self.header_of(bam), self.path("p.arrow")), want)
            # With the metadata of the file that was read.
            metadata = pyarrow.ipc.open_file(self.path("odd.arrow")).schema.metadata
            again = some.collect().to_arrow().replace_schema_metadata(metadata)
            self.assertEqual(self.checksum(self.save(again)), want)


class DuckDB(Back):
    def test_tables(self):
        bam, table = self.odd_source()
        parquet = self.path("x.parquet")
        self.sort_ok("--no-PG", "-o", parquet, bam)
        header, want = self.header_of(bam), self.checksum(bam)
        database = duckdb.connect()
        database.register("reads", table)
        for settings in ("", "set arrow_large_buffer_size = true",
                         "set produce_arrow_string_view = true; set arrow_output_version = '1.4'",
                         "set arrow_output_list_view = true"):
            if settings:
                database.execute(settings)
            for query in ("from reads", f"from '{parquet}'",
                          f"select * replace (map_entries(tags) as tags) from '{parquet}'"):
                got = database.sql(query).arrow()
                got = got.read_all() if hasattr(got, "read_all") else got
                path = self.save(got, codec="lz4")
                self.assertEqual(self.checksum(header, path), want, (settings, query))
                path = self.save(got.replace_schema_metadata(table.schema.metadata))
                self.assertEqual(self.checksum(path), want, (settings, query))


class Recipes(Back):
    def test_filters(self):
        """What doc/columns.md says."""
        bam, table = self.odd_source()
        parquet, some = self.path("sample.parquet"), self.path("some.arrow")
        self.sort_ok("--no-PG", "-o", parquet, bam)
        kept = table.filter(pyarrow.compute.greater_equal(table["mapq"], 30))
        want = self.checksum(self.save(kept, "want.arrow"))
        again, header = self.path("some.parquet"), self.header_of(bam)
        got = pyarrow.parquet.read_table(parquet, filters=[("mapq", ">=", 30)])
        pyarrow.parquet.write_table(got, again)
        pyarrow.feather.write_feather(got, some)
        self.assertEqual([self.checksum(again), self.checksum(some)], [want] * 2)
        filtered = polars.scan_parquet(parquet).filter(polars.col("mapq") >= 30)
        filtered.sink_parquet(again)
        filtered.sink_ipc(some)
        self.assertEqual([self.checksum(header, again), self.checksum(header, some)], [want] * 2)
        duckdb.sql(f"copy (from '{parquet}' where mapq >= 30) to '{again}'")
        self.assertEqual(self.checksum(header, again), want)
        filtered.sink_parquet(again, metadata=polars.read_parquet_metadata(parquet))
        self.assertEqual(self.checksum(again), want)
        reads = duckdb.sql(f"from '{parquet}' where mapq >= 30").to_arrow_table()
        metadata = pyarrow.parquet.read_schema(parquet).metadata
        pyarrow.feather.write_feather(reads.replace_schema_metadata(metadata), some)
        self.assertEqual(self.checksum(some), want)

    def test_pipe(self):
        """A stream of Polars comes through a pipe; its file does not, and the message says so."""
        bam, table = self.odd_source()
        frame, path = polars.from_arrow(table), self.path("p.arrow")
        header, want = self.header_of(bam), self.checksum(bam)
        for write, is_file in ((frame.write_ipc_stream, False), (frame.write_ipc, True)):
            write(path)
            with open(path, "rb") as file:
                data = file.read()
            result = self.rocksort("--checksum-only", header, "-", stdin=data)
            if is_file:
                self.assert_error(result, "cannot be read from a pipe")
            else:
                self.assertEqual((result.status, result.out), (0, want))
            with open(path, "rb") as file:      # standard input can be a file
                self.assertEqual(self.sort_ok("--checksum-only", header, "-", stdin=file).out, want)


class Headers(Back):
    def test_lent(self):
        """The header comes from the first input, whatever that is."""
        bam, table = self.source()
        bare = self.save(table.replace_schema_metadata({}), "bare.arrow")
        want = self.path("want.bam")
        self.sort_ok("--no-PG", "-o", want, bam)
        with open(bare, "rb") as file:
            data = file.read()
        header = self.header_of(bam)
        empty = self.bam_of(bamfile.read(bam).text, name="empty.bam")
        for first in (header, empty):
            for options, second, how in (([], bare, {}), ([], "-", {"stdin": data}),
                                         (["--merge"], bare, {})):
                got = self.sort_bam("--no-PG", *options, "-o", "-", first, second, **how)
                self.assert_same_bam(got, bamfile.read(want), (first, options))
        twice = self.sort_bam("-o", "-", bam, bare, bare)
        self.assertEqual(len(bamfile.split(twice.records)), 3 * 360)

    def test_missing(self):
        bam, table = self.source()
        bare = self.save(table.replace_schema_metadata({}), "bare.arrow")
        for inputs in ([bare], [bare, self.header_of(bam)]):
            self.refused(inputs, bare, "have no sam_header", "as the first input")
        other = self.write("other.sam", "@SQ\tSN:e\tLN:9\n")
        self.refused([other, bare], bare, "column 'rname'", "header does not have")
        metadata = {**table.schema.metadata, b"rocksort_columns": b"2"}
        self.refused([self.save(table.replace_schema_metadata(metadata))], "another version")
        del metadata[b"rocksort_columns"]
        self.assert_comes_back(bam, self.save(table.replace_schema_metadata(metadata)))


class Refused(Back):
    def test_columns(self):
        _, table = self.source()
        self.refused([self.save(table.drop_columns(["seq", "tags"]))],
                     "records need columns that it does not have: seq, tags")
        self.refused([self.save(table.drop_columns("NM"))], "it lacks a tag")
        self.refused([self.save(table.append_column("flag", table["flag"]))], "twice")
        self.refused([self.save(pyarrow.table({"a": [1]}))],
                     "does not have: qname, flag, rname, pos, mapq,", "tags")
        for name, to in (("flag", pyarrow.string()), ("pos", pyarrow.float64()),
                         ("mapq", lambda array: array.dictionary_encode()),
                         ("qname", lambda array: pyarrow.array(range(len(array)))),
                         ("seq", pyarrow.binary()),
                         ("tags", lambda array: pyarrow.array(["XS:i:1"] * len(array))),
                         ("rname", lambda array: array.indices)):
            self.refused([self.save(cast(table, name, to))], f"column '{name}' has a type")

    def test_values(self):
        _, table = self.source()
        for name, value in (("flag", 65536), ("flag", -1), ("mapq", 256), ("pos", 2**31),
                            ("tlen", -2**31 - 1), ("NM", 2**63)):
            kind = pyarrow.int64() if value < 2**63 else pyarrow.uint64()
            bad = pyarrow.array([None] * (len(table) - 1) + [value], kind)
            path = self.save(cast(table.combine_chunks(), name, lambda array, new=bad: new))
            self.refused([path], f"column '{name}' has a value that does not fit")

    def test_letters(self):
        """Bases and qualities are looked at several at a time: one that is wrong is found wherever
        it is."""
        seq = "ACGTNRYSWKMBDHV=ACGTA"
        bam = self.bam_of(SQ + f"r\t4\t*\t0\t0\t*\t*\t0\t0\t{seq}\t" + "!~" * 10 + "I\n")
        self.sort_ok("--no-PG", "-o", self.path("s.arrow"), bam)
        table = self.read(self.path("s.arrow"))
        self.assert_comes_back(bam, self.save(table))
        for name, text, wrong, problem in (
                ("seq", seq, "aZ*\x01", "letters that BAM does not have"),
                ("qual", "!~" * 10 + "I", " \x7f\x01\u00e9", "a quality outside ! to ~")):
            for at in (0, 7, 8, 15, 19, 20):
                for letter in wrong:
                    changed = (text[:at] + letter + text[at + 1:]).encode()[:len(text)]
                    bad = pyarrow.array([changed]).cast(pyarrow.string(), safe=False)
                    path = self.save(cast(table, name, lambda array, new=bad: new))
                    self.refused([path], "record 1", problem)
        self.refused([self.save(cast(table, "qual", lambda array: pyarrow.array(["I"])))],
                     "differ in length")

    def test_names_that_break_lines(self):
        """A name with a tab or a line break made other lines of SAM; columns have no such names,
        in or out."""
        bam, table = self.source()
        names = table.column("qname").to_pylist()
        for bad in "a\nb", "a\tb", "a\x7f", "\x01", "a\0b":
            column = pyarrow.array(names[:7] + [bad] + names[8:])
            path = self.save(cast(table.combine_chunks(), "qname", lambda array, new=column: new))
            self.refused([path], "record 8", "control character")
            record = bamfile.record(flag=4, tid=-1, pos=-1, name=bad.replace("\0", "\n"))
            source = self.write("bad.bam", bamfile.bam_file("", [("c", 9)], [record]))
            self.assert_error(self.rocksort("-o", self.path("o.parquet"), source), "read",
                              "control character")
            self.sort_ok("--columns", "pos", "-o", self.path("o.parquet"), source)
        self.assertEqual(self.checksum(bam), self.checksum(self.save(table)))

    def test_positions_below_one(self):
        _, table = self.source()
        for name in "pos", "pnext":
            for value in -1, -5, -2**31 + 1, -2**31:
                column = pyarrow.array([value] + [1] * (len(table) - 1), pyarrow.int32())
                path = self.save(cast(table.combine_chunks(), name, lambda array, new=column: new))
                self.refused([path], "record 1", "negative")

    def test_not_utf8(self):
        """Texts that are damaged are noticed where no checksum shows it."""
        for text, problem in ((b"NAMEOFREAD", "its name is not UTF-8"),
                              (b"TEXTOFTAG", "text that is not UTF-8"),
                              (b"TEXTOFMAP", "text that is not UTF-8")):
            bam = self.bam_of(SQ + "NAMEOFREAD\t0\tc\t1\t9\t1M\t*\t0\t0\tA\tI\t"
                              "CO:Z:TEXTOFTAG\tXX:Z:TEXTOFMAP\n")
            self.sort_ok("-u", "-o", self.path("u.arrow"), bam)
            with open(self.path("u.arrow"), "rb") as file:
                data = file.read()
            self.assertEqual(data.count(text), 1)
            bad = self.write("bad.arrow", data.replace(text, text[:-2] + b"\xff\xff"))
            for output in ("o.bam", "o.parquet"):
                self.assert_error(self.rocksort("-o", self.path(output), bad), bad, "record 1",
                                  problem)

    def test_rows(self):
        """A row that is wrong is found whichever worker makes its record, and those before it are
        whole records."""
        bam, table = self.odd_source()
        names = table.column("qname").to_pylist()
        for at in (0, 700, len(names) - 1):
            long = pyarrow.array(names[:at] + ["x" * 255] + names[at + 1:])
            path = self.save(cast(table.combine_chunks(), "qname", lambda array, new=long: new),
                             rows=400)
            for options in ([], ["-@", "3"], ["--merge"]):
                result = self.rocksort(*options, "-o", self.path("o.bam"), path)
                self.assert_error(result, f"record {at + 1} ", "its name has more than 254 bytes")
        # In templates.
        reads = self.path("mates.sam")
        write_sam(reads, *templates(600, seed=1))
        self.sort_ok("--no-PG", "-n", "-o", self.path("n.arrow"), reads)
        want = self.sort_bam("--no-PG", "--fixmate=-m", "-o", "-", reads)
        got = self.sort_bam("--no-PG", "--fixmate=-m", "-o", "-", self.path("n.arrow"))
        self.assertEqual(sorted(bamfile.split(got.records)), sorted(bamfile.split(want.records)))
        # With renames, as of read groups of several inputs.
        other = self.bam_of("@RG\tID:a\tSM:x\n" + TAGGED, name="1.bam")
        group = self.bam_of("@RG\tID:a\tSM:y\n" + TAGGED, name="2.bam")
        self.sort_ok("--no-PG", "-o", self.path("2.arrow"), group)
        want = self.sort_bam("--no-PG", "-o", "-", other, group)
        for options in ([], ["-@", "3"]):
            got = self.sort_bam("--no-PG", *options, "-o", "-", other, self.path("2.arrow"))
            self.assert_same_bam(got, want)

    def test_unknown_columns(self):
        """They are left out, whatever their type, with a warning."""
        bam, table = self.source()
        want = self.checksum(bam)
        numbers = pyarrow.array(range(len(table)))
        for column in (
                numbers, numbers.cast(pyarrow.string()), numbers.cast(pyarrow.decimal128(20)),
                numbers.cast(pyarrow.timestamp("us")), pyarrow.nulls(len(table)),
                numbers.cast(pyarrow.bool_()), pyarrow.array([b"long enough not to be inline"] *
                                                             len(table), pyarrow.binary_view()),
                numbers.cast(pyarrow.string()).dictionary_encode(),
                pyarrow.array([[1, 2]] * len(table), pyarrow.list_(pyarrow.int8(), 2)),
                pyarrow.array([{"a": 1, "b": "x"}] * len(table)), numbers.cast(pyarrow.float16()),
                pyarrow.compute.run_end_encode(numbers),
                pyarrow.UnionArray.from_sparse(pyarrow.array([0] * len(table), pyarrow.int8()),
                                               [numbers, numbers]),
                pyarrow.UnionArray.from_dense(pyarrow.array([0] * len(table), pyarrow.int8()),
                                              numbers.cast(pyarrow.int32()), [numbers, numbers])):
            for name in ("contig", "1X", "a"):
                path = self.save(table.add_column(3, name, column))
                result = self.sort_ok("--checksum-only", path)
                self.assertEqual(result.out, want, column.type)
                self.assertIn("warning", result.err)
                self.assertIn(f"such as '{name}'", result.err)
        # Of several inputs each is opened twice, and warns once.
        result = self.sort_ok("-o", self.path("o.bam"), path, path)
        self.assertEqual(result.err.count("warning"), 2)


if __name__ == "__main__":
    unittest.main()
