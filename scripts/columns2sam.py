#!/usr/bin/env python3
"""Writes the records of a Parquet or Arrow file of `samtools rocksort` as SAM to standard output:

    rocksort-columns2sam x.parquet | samtools rocksort -o x.bam -

DuckDB, Polars or pyarrow may have filtered the file and written it again. FILE is - for standard
input: an Arrow stream, or a file that is not a pipe. After an error the last line of the output is
not SAM, so the program that reads the pipe fails, too. Needs pyarrow.
"""

import argparse
import contextlib
import gzip
import itertools
import os
import signal
import struct
import sys

try:
    import pyarrow
    from pyarrow import compute, ipc, parquet
except ImportError:
    sys.exit("rocksort-columns2sam: pyarrow is missing; to install it: pip install pyarrow")

FIELDS = ("qname", "flag", "rname", "pos", "mapq", "cigar", "rnext", "pnext", "tlen", "seq", "qual")
# What null becomes; "null" is no number, so the reader of the SAM refuses the record.
NUMBERS = {"flag": "null", "pos": "0", "mapq": "null", "pnext": "0", "tlen": "null"}
NEEDED = FIELDS + ("tag_types", "tags")
ELEMENTS = {"int8": "c", "uint8": "C", "int16": "s", "uint16": "S", "int32": "i", "uint32": "I",
            "float": "f"}
PIECE_BYTES, PIECE_ROWS = 8 << 20, 1 << 16      # the most that is converted at a time
TEXT = pyarrow.large_string()


def joined(*parts, separator=""):
    """Joins arrays of texts and constants, row by row; null if one of them is."""
    return compute.binary_join_element_wise(
        *(pyarrow.scalar(part, TEXT) if isinstance(part, str) else part for part in parts),
        pyarrow.scalar(separator, TEXT))


def as_text(array, letter="Z"):
    """Values in the form that SAM has for a tag of this type, floats with all digits of 32 bits."""
    if "list_view" in str(array.type):          # pyarrow 26 loses elements when it casts them
        raise ValueError("list views are not read: write lists")
    if pyarrow.types.is_dictionary(array.type):
        array = array.dictionary.cast(TEXT).take(array.indices)
    if letter != "B":
        kind = {"i": pyarrow.int64(), "f": pyarrow.float32()}.get(letter, TEXT)
        return array.cast(kind).cast(TEXT)
    element = ELEMENTS.get(str(getattr(array.type, "value_type", None)))
    if not element:
        raise ValueError(f"{array.type} is no list of numbers that BAM has")
    texts = compute.binary_join(array.cast(pyarrow.large_list(TEXT)), pyarrow.scalar(",", TEXT))
    return joined(element, compute.if_else(compute.equal(texts, ""), texts, joined(",", texts)))


def entries_of(maps):
    """The row, the key and the value of each entry of maps, or of lists of structs."""
    if not hasattr(maps.type, "value_type"):        # a map, or nulls only
        maps = maps.cast(pyarrow.list_(pyarrow.struct([("key", TEXT), ("value", TEXT)])))
    entries = compute.list_flatten(maps)
    return (compute.list_parent_indices(maps),
            *(as_text(compute.struct_field(entries, [i])) for i in (0, 1)))


class Piece:
    """Makes the lines of some rows."""

    def __init__(self, batch):
        self.batch, self.tags = batch, {}
        self.rows = pyarrow.array(range(len(batch)), pyarrow.int64())
        self.entries = self.column("tags", entries_of)

    def column(self, name, convert, *letter):
        try:
            return convert(self.batch.column(name), *letter)
        except (ValueError, pyarrow.ArrowException) as error:
            raise ValueError(f"its column '{name}': {error}") from error

    def tag(self, word):
        """A tab and the tag that a word of tag_types, such as NM:C, names; null: no value."""
        if word not in self.tags:
            tag, letter = word[:2], "i" if word[3:] in tuple("cCsSI") else word[3:]
            rows, keys, values = self.entries
            is_tag = compute.equal(keys, tag)
            texts = values.filter(is_tag).take(compute.index_in(self.rows, rows.filter(is_tag)))
            if letter in tuple("fdB"):
                texts = compute.replace_substring_regex(texts, r"nan\(0x[0-9a-f]+\)", "nan")
            if tag in self.batch.schema.names:
                with contextlib.suppress(ValueError):   # the column has tags of another type
                    texts = compute.coalesce(self.column(tag, as_text, letter), texts)
            self.tags[word] = joined(f"\t{tag}:{letter}:", texts)
        return self.tags[word]

    def lines(self, references):
        """All lines. Those with the same tags are made together."""
        fields = {name: self.column(name, as_text, "i" if name in NUMBERS else "Z")
                  for name in FIELDS}
        for name in fields["rname"].unique().to_pylist() + fields["rnext"].unique().to_pylist():
            if name is not None and name not in references:
                raise ValueError(f"the header does not have its reference '{name}'")
        fields = joined(*(compute.fill_null(texts, NUMBERS.get(name, "*"))
                          for name, texts in fields.items()), separator="\t")
        groups, lines = {}, [None] * len(self.batch)
        for row, types in enumerate(self.column("tag_types", as_text).to_pylist()):
            groups.setdefault(types, []).append(row)
        for types, rows in groups.items():
            words = types.split(",") if types else []
            parts = [part.take(pyarrow.array(rows)) for part in [fields, *map(self.tag, words)]]
            for row, line in zip(rows, joined(*parts, "\n").to_pylist()):
                if not line or [line.count(c) for c in "\t\n\r"] != [10 + len(words), 1, 0]:
                    raise ValueError(f"read {self.batch.column('qname')[row].as_py()!r} " + (
                        "has a tab or a line break in its text, which SAM cannot hold" if line
                        else "lacks a tag of its tag_types, or has it with another type"))
                lines[row] = line
        return "".join(lines).encode()


def header_of(metadata, path):
    """The header of the SAM or BAM file of --header, or else that of the metadata."""
    if metadata.get(b"rocksort_columns", b"1") != b"1":
        raise ValueError("its columns are those of another version of rocksort")
    if not path and b"sam_header" not in metadata:
        raise ValueError("its metadata have no sam_header, as Polars and DuckDB drop it: give a "
                         "SAM or BAM file that has this header with --header")
    if not path:
        is_latin = metadata.get(b"sam_header_encoding") == b"latin-1"
        return metadata[b"sam_header"].decode().encode("latin-1" if is_latin else "utf-8")
    with open(path, "rb") as file:
        text = gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == b"\x1f\x8b" else file
        if text.peek(4)[:4] == b"BAM\1":
            return text.read(*struct.unpack("<4xi", text.read(8))).rstrip(b"\0")
        return b"".join(itertools.takewhile(lambda line: line[:1] == b"@", text))


def rows_of(n_rows, n_bytes):
    return min(n_rows * PIECE_BYTES // max(n_bytes, 1) + 1, PIECE_ROWS)


def open_input(path):
    """Returns the schema and a function that returns the batches of some columns."""
    file = sys.stdin.buffer if path == "-" else open(path, "rb")
    begin, source = file.peek(6)[:6], pyarrow.PythonFile(file, "r")
    if not begin.startswith((b"PAR1", b"ARROW1")):
        stream = ipc.open_stream(source)
        return stream.schema, lambda names: (batch.select(names) for batch in stream)
    if not file.seekable():
        raise ValueError("only an Arrow stream can be read from a pipe: name the file")
    if begin == b"ARROW1":
        arrow = ipc.open_file(source)
        return arrow.schema, lambda names: (
            arrow.get_batch(i).select(names) for i in range(arrow.num_record_batches))
    table = parquet.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False,
                                page_checksum_verification=True)
    groups = [table.metadata.row_group(i) for i in range(table.num_row_groups)]
    n_rows = rows_of(table.metadata.num_rows, sum(group.total_byte_size for group in groups))
    schema = table.schema_arrow.with_metadata(table.metadata.metadata)
    return schema, lambda names: table.iter_batches(n_rows, columns=names)


def convert(path, header_path):
    """Writes the records of a file as SAM."""
    schema, batches = open_input(path)
    names = [name for name in schema.names if name in NEEDED or len(name) == 2]
    missing = [name for name in NEEDED if names.count(name) != 1]
    if missing:
        raise ValueError(f"it needs one column of each of these names: {', '.join(missing)}")
    header = header_of(schema.metadata or {}, header_path)
    references = {word[3:] for line in header.decode(errors="replace").splitlines()
                  for word in line.split("\t") if line[:4] == "@SQ\t" and word[:3] == "SN:"}
    sys.stdout.buffer.write(header + b"\n" * (header[-1:] not in b"\n"))
    for batch in batches(names):
        n_rows = rows_of(len(batch), batch.nbytes)
        for begin in range(0, len(batch), n_rows):
            sys.stdout.buffer.write(Piece(batch.slice(begin, n_rows)).lines(references))
    sys.stdout.buffer.flush()


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser(prog="rocksort-columns2sam", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda message: sys.exit(f"rocksort-columns2sam: {message} (see --help)")
    parser.add_argument("--header", metavar="FILE", help="a SAM or BAM file: take its header")
    parser.add_argument("file", metavar="FILE", help="Parquet or Arrow")
    args = parser.parse_args()
    try:
        convert(args.file, args.header)
    except Exception as error:          # of pyarrow, too, which raises errors of many kinds
        message = f"rocksort-columns2sam: '{args.file}': {str(error).partition(chr(10))[0]}"
        print(message, file=sys.stderr)
        with contextlib.suppress(OSError):
            print("" if sys.stdout.isatty() else message, flush=True)
        os._exit(1)                     # without flushing again, which may fail


if __name__ == "__main__":
    main()
