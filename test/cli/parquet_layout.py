"""Checks how a Parquet file is laid out, for tests: where its pages, indexes and footer are, their
checksums, and that bounds and numbers of nulls are those of the values. What the values are is a
matter of readers, which look at little of this.

Field numbers are those of Parquet's parquet.thrift.
"""

import math
import struct
import zlib

INT32, INT64, FLOAT, BYTE_ARRAY = 1, 2, 4, 6
DATA_PAGE, DICTIONARY_PAGE = 0, 2
PAGE_ROWS = 20000


class Compact:
    """Reads structs of Thrift's compact protocol as {number of field: value}."""

    def __init__(self, data, at):
        self.data, self.at = data, at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    def integer(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def value(self, kind):
        if kind == 3:
            return struct.unpack("b", bytes([self.byte()]))[0]
        if kind in (4, 5, 6):
            return self.integer()
        if kind == 8:
            n = self.varint()
            self.at += n
            return bytes(self.data[self.at - n:self.at])
        if kind == 9:
            head = self.byte()
            n = head >> 4 if head < 0xf0 else self.varint()
            if head & 15 in (1, 2):
                return [self.byte() == 1 for _ in range(n)]
            return [self.value(head & 15) for _ in range(n)]
        if kind == 12:
            return self.struct()
        raise AssertionError(f"type {kind} of Thrift")

    def struct(self):
        fields, number = {}, 0
        while True:
            head = self.byte()
            if head == 0:
                return fields
            number = number + (head >> 4) if head >> 4 else self.integer()
            assert number not in fields
            fields[number] = head & 15 == 1 if head & 15 in (1, 2) else self.value(head & 15)


def bound(physical, data):
    """A bound as a number, or as bytes."""
    if physical == BYTE_ARRAY:
        return data
    return struct.unpack({INT32: "<i", INT64: "<q", FLOAT: "<f"}[physical], data)[0]


def comparable(physical, values):
    """The values of a column that bounds are of."""
    values = [one for one in values if one is not None]
    if physical == BYTE_ARRAY:
        return [one.encode() for one in values]
    return [one for one in values if not math.isnan(one)]


class Layout:
    """The layout of a file, checked against the table that a reader made of it."""

    def __init__(self, data, table):
        assert data[:4] == data[-4:] == b"PAR1"
        self.data = data
        self.columns = {name: table.column(name).to_pylist() for name in table.column_names}
        n_footer, = struct.unpack("<I", data[-8:-4])
        self.footer_at = len(data) - 8 - n_footer
        reader = Compact(data, self.footer_at)
        self.footer = reader.struct()
        assert reader.at == len(data) - 8
        self.bounds, self.offsets = [], []      # where indexes are
        self.n_pages = 0
        row, at = 0, 4
        for number, group in enumerate(self.footer[4]):
            at = self.check_group(number, group, row, at)
            row += group[3]
        assert row == self.footer[3] == table.num_rows
        for begin, n_bytes in self.bounds + self.offsets:
            assert begin == at, "an index is not where the one before ends"
            at += n_bytes
        assert at == self.footer_at

    def check_group(self, number, group, row, at):
        begin, raw_bytes = at, 0
        assert group[5] == begin
        assert group[7] == number
        rows = slice(row, row + group[3])
        for chunk in group[1]:
            at = self.check_chunk(chunk, rows, at)
            raw_bytes += chunk[3][6]
        assert group[6] == at - begin
        assert group[2] == raw_bytes
        if "rname" in self.columns and "pos" in self.columns:
            keys = [(rname is None, (rname or "").encode(), pos is None, pos or 0) for rname, pos in
                    zip(self.columns["rname"][rows], self.columns["pos"][rows])]
            assert (keys == sorted(keys)) == (4 in group)
        return at

    def check_chunk(self, chunk, rows, at):
        """Checks the chunk at byte `at`. Returns where the next one is."""
        metadata = chunk[3]
        assert metadata.get(11, metadata[9]) == at
        end = at + metadata[7]
        pages, raw_bytes, n_values = [], 0, 0
        while at < end:
            reader = Compact(self.data, at)
            header = reader.struct()
            body = self.data[reader.at:reader.at + header[3]]
            assert zlib.crc32(body) == header[4] & 0xffffffff, "CRC"
            n_bytes = reader.at - at + header[3]
            if header[1] == DICTIONARY_PAGE:
                assert not pages and at == metadata[11]
                assert header[7][2] == 0
            else:
                assert header[1] == DATA_PAGE
                assert header[5][2] in metadata[2]
                pages.append((at, n_bytes))
                n_values += header[5][1]
            raw_bytes += reader.at - at + header[2]
            at += n_bytes
        assert at == end
        assert pages[0][0] == metadata[9]
        assert (raw_bytes, n_values) == (metadata[6], metadata[5])
        self.check_page_offsets(chunk, pages, rows)
        self.check_values(chunk, rows)
        self.n_pages += len(pages)
        return end

    def check_page_offsets(self, chunk, pages, rows):
        index = Compact(self.data, chunk[4]).struct()
        self.offsets.append((chunk[4], chunk[5]))
        assert [(page[1], page[2]) for page in index[1]] == pages
        firsts = [page[3] for page in index[1]] + [rows.stop - rows.start]
        assert firsts[0] == 0
        assert all(0 < b - a <= PAGE_ROWS for a, b in zip(firsts, firsts[1:]))

    def check_values(self, chunk, rows):
        metadata, name = chunk[3], chunk[3][3][0].decode()
        values, statistics = self.columns[name][rows], metadata[12]
        is_nested = len(metadata[3]) > 1
        n_nulls = sum(not one for one in values) if is_nested else values.count(None)
        assert statistics[3] == n_nulls
        if is_nested:
            assert metadata[5] == sum(len(one) or 1 if one is not None else 1 for one in values)
        else:
            self.check_bounds(metadata[1], statistics.get(6), statistics.get(5), values)
            self.check_page_bounds(chunk, values)

    def check_bounds(self, physical, least, most, values):
        """Bounds need not be there. If they are, they are values."""
        assert (least is None) == (most is None)
        if least is None:
            return
        values = comparable(physical, values)
        assert (bound(physical, least), bound(physical, most)) == (min(values), max(values))

    def check_page_bounds(self, chunk, values):
        if 6 not in chunk:
            return
        self.bounds.append((chunk[6], chunk[7]))
        index, physical = Compact(self.data, chunk[6]).struct(), chunk[3][1]
        firsts = [page[3] for page in Compact(self.data, chunk[4]).struct()[1]] + [len(values)]
        pages = [values[a:b] for a, b in zip(firsts, firsts[1:])]
        assert index[1] == [all(one is None for one in page) for page in pages]
        assert index[5] == [page.count(None) for page in pages]
        ascending = []
        for is_null, least, most, page in zip(index[1], index[2], index[3], pages):
            if is_null:
                assert least == most == b""
                continue
            self.check_bounds(physical, least, most, page)
            ascending.append((bound(physical, least), bound(physical, most)))
        ascends = all(a[0] <= b[0] and a[1] <= b[1] for a, b in zip(ascending, ascending[1:]))
        assert index[4] == int(ascends)
