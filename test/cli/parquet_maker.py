"""Makes Parquet files that no program writes: pages that claim more than they have.

Field numbers and types are those of Parquet's parquet.thrift.
"""

import struct

INT32, BYTE_ARRAY = 1, 6
NONE, ZSTD = 0, 6
PLAIN, RLE_DICTIONARY = 0, 8
DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = 0, 2, 3
FIELDS = {"qname": BYTE_ARRAY, "flag": INT32, "rname": BYTE_ARRAY, "pos": INT32, "mapq": INT32,
          "cigar": BYTE_ARRAY, "rnext": BYTE_ARRAY, "pnext": INT32, "tlen": INT32,
          "seq": BYTE_ARRAY, "qual": BYTE_ARRAY, "tag_types": BYTE_ARRAY}


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def compact(value):
    """The type and the bytes of a value in Thrift's compact protocol; of a struct: of {number of
    field: value}."""
    if isinstance(value, bool):
        return 1 if value else 2, b""
    if isinstance(value, int):
        return 6, varint(2 * value)
    if isinstance(value, str):
        return 8, varint(len(value)) + value.encode()
    if isinstance(value, list):
        items = [compact(item) for item in value]
        return 9, bytes([0xf0 | items[0][0]]) + varint(len(items)) + b"".join(x[1] for x in items)
    out, last = b"", 0
    for number, item in sorted(value.items()):
        kind, data = compact(item)
        out, last = out + bytes([number - last << 4 | kind]) + data, number
    return 12, out + b"\0"


def runs(*pairs):
    """Runs of (value, how many), of values of 1 to 8 bits."""
    return b"".join(varint(2 * n) + bytes([value]) for value, n in pairs)


def header(kind, raw_bytes, stored, more):
    fields = {DATA_PAGE: 5, DICTIONARY_PAGE: 7, DATA_PAGE_V2: 8}
    return compact({1: kind, 2: raw_bytes, 3: len(stored), fields[kind]: more})[1]


def page(n, levels, values=b"", encoding=PLAIN):
    """A page of version 1, not compressed. Each of the levels is runs."""
    body = b"".join(struct.pack("<I", len(one)) + one for one in levels) + values
    return header(DATA_PAGE, len(body), body, {1: n, 2: encoding, 3: 3, 4: 3}) + body


def page_v2(n, definitions, values, raw_bytes):
    """A page of version 2, whose values are compressed."""
    body = definitions + values
    more = {1: n, 2: 0, 3: n, 4: PLAIN, 5: len(definitions), 6: 0, 7: True}
    return header(DATA_PAGE_V2, raw_bytes + len(definitions), body, more) + body


def dictionary(n, values, raw_bytes=None):
    raw_bytes = len(values) if raw_bytes is None else raw_bytes
    return header(DICTIONARY_PAGE, raw_bytes, values, {1: n, 2: PLAIN}) + values


def zeros(n_bytes):
    """Compressed by zstd, in blocks that repeat one byte."""
    sizes = [1 << 17] * (n_bytes >> 17) + [n_bytes & (1 << 17) - 1]
    blocks = [struct.pack("<I", (i == len(sizes) - 1) | 2 | size << 3)[:3] + b"\0"
              for i, size in enumerate(sizes)]
    return bytes.fromhex("28b52ffd0038") + b"".join(blocks)


def same(n, value):
    """A chunk of n numbers that are the same."""
    return dictionary(1, struct.pack("<i", value)) + page(n, [runs((1, n))], b"\1" + runs((0, n)),
                                                          RLE_DICTIONARY)


def file_of(n, chunks, codec=NONE):
    """A file of n rows. A column is null, unless its chunk is given; flag, mapq and tlen are 0.
    Columns of two letters are tags, of texts. Chunks of other columns than those three can be
    compressed by the codec."""
    numbers = {name: same(n, 0) for name in ("flag", "mapq", "tlen")}
    names = FIELDS | {name: BYTE_ARRAY for name in chunks if name not in FIELDS}
    elements = [{4: "schema", 5: len(names) + 1}]
    elements += [{1: kind, 3: 1, 4: name} for name, kind in names.items()]
    elements += [{3: 1, 4: "tags", 5: 1}, {3: 2, 4: "key_value", 5: 2},
                 {1: BYTE_ARRAY, 3: 0, 4: "key"}, {1: BYTE_ARRAY, 3: 1, 4: "value"}]
    out, stored = b"PAR1", []
    nulls = page(n, [runs((0, n))])
    of_map = page(n, [runs((0, n)), runs((0, n))])
    for name in [*names, None, None]:
        default = numbers.get(name, nulls) if name else of_map
        data = chunks.get(name, default) if name else default
        stored.append({2: 0, 3: {1: 0, 2: [0], 3: ["x"], 4: codec if name in chunks else NONE,
                                 5: n, 6: 0, 7: len(data), 9: len(out)}})
        out += data
    footer = compact({1: 2, 2: elements, 3: n, 4: [{1: stored, 2: 0, 3: n}],
                      5: [{1: "sam_header", 2: "@SQ\tSN:c\tLN:9\n"},
                          {1: "rocksort_columns", 2: "1"}]})[1]
    return out + footer + struct.pack("<I", len(footer)) + b"PAR1"
