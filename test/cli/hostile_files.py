"""Damaged and malicious files: named cases, each with its own fault, and random damage.

A case is (name, extension, bytes). Cases are made from a base file, whose records have all fields
and tags that sort keys use. It has about 30 blocks, so that a file with little damage is spilled as
several runs under a small budget.
"""

import gzip
import random
import struct
from collections import namedtuple

import bamfile
import generate

Case = namedtuple("Case", "name extension data")

REFS = [("chr1", 100000), ("chr2", 50000), ("chr3", 1 << 29)]
TEXT = ("@HD\tVN:1.6\tSO:unsorted\n" + bamfile.sq_text(REFS) +
        "@RG\tID:g0\tSM:s\tLB:l1\n@RG\tID:g1\tSM:s\tLB:l0\n@PG\tID:p\tPN:p\n")
EDGES = (0, 1, 2, 31, 32, 33, 36, 127, 128, 255, 256, 65535, 65536, (1 << 28), (1 << 31) - 1,
         1 << 31, (1 << 32) - 2, (1 << 32) - 1)


def base_record(rng, number):
    tid, pos = rng.randrange(2), rng.randrange(40000)
    flag = rng.choice((99, 147, 83, 163, 0, 16, 4, 77, 1024))
    aux = (b"RGZg%d\0" % rng.randrange(2) + b"MCZ50M\0" + b"MIZ%d/A\0" % rng.randrange(50) +
           b"CBZcell-%d\0" % rng.randrange(9) + b"NMC\1" +
           b"XFf" + struct.pack("<f", rng.random()) + b"XBBS" + struct.pack("<IHH", 2, 1, 65535))
    seq = "".join(rng.choices("ACGT", k=50))
    if flag & 4:
        place = (-1, -1) if rng.random() < 0.5 else (tid, pos)
        return bamfile.record(f"u{number}", flag, *place, "", seq, aux, 0, (*place, 0))
    cigar = rng.choice(("50M", "5S45M", "20M2D30M", "10H50M", "40M10S"))
    return bamfile.record(f"run:{rng.randrange(9)}:{number}", flag, tid, pos, cigar, seq, aux, 30,
                          (tid, rng.randrange(40000), 200))


def base_records(n_records=1500, seed=1):
    rng = random.Random(seed)
    return [base_record(rng, i) for i in range(n_records)]


def header(text=TEXT, refs=REFS):
    """The header of the base, or with other text or references."""
    return bamfile.bam_header(text, refs)


def blocks_of(raw, step=12000):
    """raw as BGZF blocks of step bytes each."""
    return [bamfile.bgzf_block(raw[i : i + step]) for i in range(0, len(raw), step)]


class Base:
    """The sound file that cases are made from."""

    def __init__(self, n_records=1500):
        self.records = base_records(n_records)
        self.head = header()
        self.raw = self.head + b"".join(self.records)
        self.blocks = blocks_of(self.raw)
        self.bam = b"".join(self.blocks) + bamfile.EOF_BLOCK
        self.middle = len(self.records) // 2

    def with_record(self, raw):
        """The base with its middle record replaced by raw."""
        records = self.records[: self.middle] + [bytes(raw)] + self.records[self.middle + 1 :]
        return self.with_raw(self.head + b"".join(records))

    @staticmethod
    def with_raw(raw):
        """A BAM file whose uncompressed content is raw."""
        return b"".join(blocks_of(raw)) + bamfile.EOF_BLOCK

    def with_field(self, offset, code, value):
        """The base with one field of its middle record set to value."""
        raw = bytearray(self.records[self.middle])
        struct.pack_into("<" + code, raw, offset, value)
        return self.with_record(raw)

    def with_header(self, head):
        """The base with another header."""
        return self.with_raw(head + b"".join(self.records[:20]))

    def with_blocks(self, blocks):
        """A file with these blocks and the EOF block."""
        return b"".join(blocks) + bamfile.EOF_BLOCK


# Fields of a record: offset from the start of its length field, format code of struct, name.
FIELDS = ((0, "I", "block_size"), (4, "I", "refID"), (8, "I", "pos"), (12, "B", "l_read_name"),
          (16, "H", "n_cigar"), (18, "H", "flag"), (20, "I", "l_seq"), (24, "I", "next_refID"),
          (28, "I", "next_pos"), (32, "I", "tlen"))


def field_cases(base):
    """Each field of a record with its smallest and largest values."""
    for offset, code, name in FIELDS:
        most = (1 << (8 * struct.calcsize(code))) - 1
        for value in EDGES:
            if value <= most:
                yield Case(f"{name}={value}", "bam", base.with_field(offset, code, value))


def tag_cases():
    """Tags that are not valid or reach beyond their record."""
    bad = {
        "no type": b"XX", "one letter": b"X", "unknown type": b"XXy\0\0\0\0",
        "Z without end": b"XXZabc", "H without end": b"XXHabc", "integer cut": b"XXi\0\0",
        "float cut": b"XXf\0", "double": b"XXd" + b"\1" * 8,
        "array cut": b"XXBi\1\0\0\0\0\0", "array huge": b"XXBI\xff\xff\xff\xff",
        "array overflow": b"XXBI\0\0\0\x40", "array negative": b"XXBc\0\0\0\x80",
        "array of no type": b"XXBz\1\0\0\0\0", "array without count": b"XXBc\1",
        "MC is an integer": b"MCi\1\0\0\0", "MC empty": b"MCZ\0",
        "MC junk": b"MCZ99999999999999999999M%s%n\0", "MI is an integer": b"MIi\1\0\0\0",
        "MI slash": b"MIZ/\0", "RG is an array": b"RGBc\1\0\0\0\0",
        "CG of nothing": b"CGBI\0\0\0\0", "CG huge": b"CGBI\xff\xff\xff\x1f",
        "long positions": b"\1\1BI\6\0\0\0" + struct.pack("<qqq", 1 << 40, 1 << 40, 1 << 40),
        "long positions that cannot be": b"\1\1BI\6\0\0\0" + b"\xff" * 23 + b"\x7f",
    }
    for name, aux in bad.items():
        # With and without sound tags before it. Read and mate are mapped, so that keys use MC.
        for front in (b"", b"RGZg0\0MCZ50M\0"):
            raw = bamfile.record("tags", 99, 0, 0x7fffffff if "long" in name else 500, "50M",
                                 "A" * 50, front + aux, 9, (0, 700, 200))
            yield Case(f"tag {name}, {'after others' if front else 'first'}", "bam", raw)


def header_cases(base):
    """Wrong counts and lengths in the BAM header, and text that does not agree with them."""
    n_text = len(TEXT)
    for place, name in ((4, "l_text"), (8 + n_text, "n_ref"), (12 + n_text, "l_name"),
                        (16 + n_text + 5, "l_ref")):
        for value in EDGES:
            raw = bytearray(base.head)
            struct.pack_into("<I", raw, place, value)
            yield Case(f"{name}={value}", "bam", base.with_header(bytes(raw)))
    sq = bamfile.sq_text(REFS)
    texts = {
        "no text": "", "no @SQ": "@HD\tVN:1.6\n", "other names": sq.replace("chr", "ref"),
        "other lengths": sq.replace("LN:100000", "LN:5"),
        "fewer @SQ": "".join(sq.splitlines(True)[:1]),
        "more @SQ": sq + "@SQ\tSN:more\tLN:9\n", "@SQ twice": sq + sq,
        "duplicate names": sq.replace("chr2", "chr1"), "no LN": sq.replace("\tLN:50000", ""),
        "LN negative": sq.replace("LN:50000", "LN:-5"),
        "LN of text": sq.replace("LN:50000", "LN:x"),
        "LN beyond 32 bits": sq.replace("LN:50000", "LN:99999999999"),
        "no SN": sq.replace("SN:chr2\t", ""), "name of nothing": sq.replace("SN:chr2", "SN:"),
        "no tabs": TEXT.replace("\t", " "), "no newline at the end": TEXT.rstrip("\n"),
        "CR LF": TEXT.replace("\n", "\r\n"), "empty lines": TEXT.replace("\n", "\n\n"),
        "NULs": TEXT.replace("@RG", "\0\0\0"), "two @HD": "@HD\tVN:1.6\n" + TEXT,
        "@HD last": sq + "@HD\tVN:1.6\tSO:coordinate\n", "@HD of no value": "@HD\tVN\tSO\n" + sq,
        "@RG without ID": TEXT.replace("ID:g0\t", ""), "@RG twice": TEXT + "@RG\tID:g0\tLB:other\n",
        "@PG in a circle": TEXT + "@PG\tID:q\tPP:r\n@PG\tID:r\tPP:q\n",
        "@PG of itself": TEXT + "@PG\tID:q\tPP:q\n",
        "@PG without parent": TEXT + "@PG\tID:q\tPP:zz\n",
        "lone @": TEXT + "@\n", "lone tab": TEXT + "\t\n", "no @": TEXT + "text\n",
        "control characters": TEXT + "@CO\t\x1b[2J\x07\n", "formats": TEXT + "@CO\t%s%n%n%s\n",
        "long line": TEXT + "@CO\t" + "x" * 300000 + "\n",
        "many tags": TEXT + "@RG\tID:m" + "\tXX:y" * 9000 + "\n",
        "only NULs": "\0" * 50, "long names": sq.replace("chr2", "n" * 70000),
    }
    for name, text in texts.items():
        yield Case(f"header text: {name}", "bam", base.with_header(header(text)))
    yield Case("no references", "bam", base.with_header(header("", [])))
    yield Case("zero-length name", "bam", base.with_header(header("", [("", 5)] * 3)))
    yield Case("duplicate references", "bam", base.with_header(header("", [("x", 5)] * 3)))


def block_cases(base):
    """BGZF blocks in wrong places or with wrong sizes."""
    blocks, half = base.blocks, len(base.blocks) // 2
    first, second, rest = blocks[:half], blocks[half], blocks[half + 1 :]
    empty = bamfile.bgzf_block(b"")

    def changed(offset, code, value):
        block = bytearray(second)
        struct.pack_into("<" + code, block, offset % len(block), value)
        return base.with_blocks([*first, bytes(block), *rest])

    yield Case("as it was", "bam", base.bam)
    yield Case("blocks swapped", "bam", base.with_blocks([*first, *rest[:1], second, *rest[1:]]))
    yield Case("block missing", "bam", base.with_blocks([*first, *rest]))
    yield Case("block twice", "bam", base.with_blocks([*first, second, second, *rest]))
    yield Case("empty blocks", "bam",
               base.with_blocks([empty] * 3 + first + [empty, second] + rest))
    yield Case("EOF block in the middle", "bam",
               base.with_blocks([*first, bamfile.EOF_BLOCK, second, *rest]))
    yield Case("no EOF block", "bam", b"".join(blocks))
    yield Case("three EOF blocks", "bam", base.bam + 2 * bamfile.EOF_BLOCK)
    yield Case("garbage after the end", "bam", base.bam + b"garbage" * 9)
    yield Case("zeros after the end", "bam", base.bam + b"\0" * 4096)
    yield Case("a gzip member after the end", "bam", base.bam + gzip.compress(b"x" * 99, mtime=0))
    yield Case("the file twice", "bam", base.bam + base.bam)
    yield Case("one block of stored data", "bam",
               base.with_blocks([bamfile.bgzf_block(base.raw[:60000], 0)]))
    for name, offset, code in (("BSIZE", 16, "H"), ("ISIZE", -4, "I"), ("CRC", -8, "I"),
                               ("XLEN", 10, "H"), ("flags", 3, "B"), ("method", 2, "B"),
                               ("extra field", 12, "H"), ("SLEN", 14, "H")):
        for value in (0, 1, 5, 6, 25, 26, 27, 255, 256, 65535, 65536, 1 << 31, (1 << 32) - 1):
            if value < 1 << (8 * struct.calcsize(code)):
                yield Case(f"{name}={value}", "bam", changed(offset, code, value))
    # An extra field before that of BGZF, which the specification allows but no program writes.
    longer = bytearray(second[:12] + b"XY\1\0z" + second[12:])
    struct.pack_into("<H", longer, 10, 11)
    struct.pack_into("<H", longer, 21, len(longer) - 1)
    yield Case("another extra field first", "bam", base.with_blocks([*first, bytes(longer), *rest]))


def truncation_cases(base):
    """A small file, cut at each byte of its first and last block, and at many other bytes."""
    data = base.bam
    offsets = bamfile.bgzf_block_offsets(data)
    places = set(range(0, 60)) | set(range(len(data) - 60, len(data)))
    places |= {offset + more for offset in offsets[1:-1:5] for more in (-9, -1, 0, 1, 17, 18, 40)}
    for size in sorted(place for place in places if 0 <= place < len(data)):
        yield Case(f"cut to {size} bytes", "bam", data[:size])


def sam_cases():
    """SAM text with invalid lines."""
    good = generate.odd(300)
    unmapped = "\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*"
    lines = {
        "too few fields": "r\t0\tchr10\t5", "a flag of text": "r\tx\tchr10\t5\t9\t*\t*\t0\t0\t*\t*",
        "flag too large": "r\t99999\tchr10\t5\t9\t*\t*\t0\t0\t*\t*",
        "uracil": "r\t0\tchr10\t5\t9\t8M\t*\t0\t0\tACGUuacU\tUUUUuuuu\tXX:Z:Uu",
        "MAPQ too large": "r\t0\tchr10\t5\t256\t*\t*\t0\t0\t*\t*",
        "position negative": "r\t0\tchr10\t-5\t9\t*\t*\t0\t0\t*\t*",
        "position beyond 64 bits": "r\t0\tchr10\t99999999999999999999\t9\t*\t*\t0\t0\t*\t*",
        "position beyond 31 bits": "r\t0\tchr10\t4294967296\t9\t*\t*\t0\t0\t*\t*",
        "CIGAR of nothing": "r\t0\tchr10\t5\t9\tM\t*\t0\t0\tACGT\t*",
        "CIGAR too long": "r\t0\tchr10\t5\t9\t5M\t*\t0\t0\tACGT\t*",
        "CIGAR overflow": "r\t0\tchr10\t5\t9\t99999999999M\t*\t0\t0\t*\t*",
        "unknown operation": "r\t0\tchr10\t5\t9\t4Q\t*\t0\t0\tACGT\t*",
        "quality too short": "r\t0\tchr10\t5\t9\t4M\t*\t0\t0\tACGT\tFF",
        "unknown reference": "r\t0\tnone\t5\t9\t4M\t*\t0\t0\tACGT\t*",
        "unknown mate": "r\t0\tchr10\t5\t9\t4M\tnone\t9\t0\tACGT\t*",
        "bad tag": "r" + unmapped + "\tXX", "tag type": "r" + unmapped + "\tXX:y:1",
        "array type": "r" + unmapped + "\tXX:B:z,1", "number": "r" + unmapped + "\tXX:i:zz",
        "array with a sign": "r" + unmapped + "\tXX:B:S,1,-1",
        "array with letters": "r" + unmapped + "\tXX:B:i,1,2x",
        "array of floats with letters": "r" + unmapped + "\tXX:B:f,1.5,x",
        "array of floats": "r" + unmapped + "\tXX:B:f,1.5,-1e-5,nan,-inf\tXY:i:1",
        "array with nothing": "r" + unmapped + "\tXX:B:i,,1,+2,-3,\tXY:i:1",
        "integer too large": "r" + unmapped + "\tXX:i:99999999999",
        "long name": "n" * 255 + unmapped, "no name": unmapped,
        "escape sequence": "\x1b[2Jr\t4", "NUL": "r" + unmapped + "\tXX:Z:a\0b",
        "empty line": "", "header line": "@CO\tlate", "formats": "%s%n%s\tx",
        "only tabs": "\t" * 20,
    }
    head, records = good.split("\n", 5)[:5], good.split("\n", 5)[5]
    cut = records.find("\n", len(records) // 2) + 1
    for name, line in lines.items():
        text = "\n".join(head) + "\n" + records[:cut] + line + "\n" + records[cut:]
        yield Case(f"SAM line: {name}", "sam", text.encode("latin-1"))
    heads = {
        "LN:0": "@SQ\tSN:a\tLN:0\n", "LN at 63 bits": "@SQ\tSN:a\tLN:9223372036854775807\n",
        "LN beyond 64 bits": "@SQ\tSN:a\tLN:99999999999999999999\n",
        "LN negative": "@SQ\tSN:a\tLN:-1\n", "@SQ twice": "@SQ\tSN:a\tLN:5\n@SQ\tSN:a\tLN:5\n",
        "two LN": "@SQ\tSN:a\tLN:5\tLN:6\n", "LN twice": "@SQ\tSN:a\tLN:5\tLN:5\n",
        "no LN": "@SQ\tSN:a\n", "no SN": "@SQ\tLN:5\n",
        "SN of nothing": "@SQ\tSN:\tLN:5\n", "only @": "@\n", "@HD alone": "@HD\n",
        "@SQ alone": "@SQ\n", "a NUL": "@CO\tx\0y\n", "no newline": "@CO\tx",
    }
    for name, text in heads.items():
        yield Case(f"SAM header: {name}", "sam", text.encode())
        yield Case(f"SAM header: {name}, and a record", "sam",
                   (text + "r\t0\ta\t1\t9\t4M\t*\t0\t0\tACGT\t*\n").encode())
    yield Case("SAM without line end", "sam", good.rstrip("\n").encode())
    yield Case("SAM with CR LF", "sam", good.replace("\n", "\r\n").encode())
    zipped = bamfile.bgzf(good.encode())
    for size in (40, len(zipped) // 2, len(zipped) - 28, len(zipped) - 1):
        yield Case(f"SAM.gz cut to {size} bytes", "sam.gz", zipped[:size])
    yield Case("BAM named SAM", "sam", bamfile.bgzf(header()))


def other_cases(base):
    """Files that are no BAM at all, or only begin like one."""
    yield Case("nothing", "bam", b"")
    yield Case("one byte", "bam", b"B")
    yield Case("plain BAM", "bam", base.raw)
    yield Case("plain BAM, cut", "bam", base.raw[: len(base.raw) // 2 + 7])
    yield Case("gzipped BAM", "bam", gzip.compress(base.raw, mtime=0))
    yield Case("gzipped BAM, cut", "bam", gzip.compress(base.raw, mtime=0)[:5000])
    yield Case("magic alone", "bam", b"BAM\1")
    yield Case("magic in a block", "bam", bamfile.bgzf(b"BAM\1"))
    yield Case("magic of a later version", "bam", bamfile.bgzf(b"BAM\2" + base.raw[4:]))
    yield Case("CRAM by its magic", "cram", b"CRAM\3\0" + b"x" * 500)
    yield Case("CRAM of version 99", "cram", b"CRAM\x63\0" + b"\0" * 500)
    yield Case("zeros", "bam", b"\0" * 5000)
    yield Case("ones", "bam", b"\xff" * 5000)


def named_cases(base):
    yield from field_cases(base)
    for case in tag_cases():
        yield case._replace(data=base.with_record(case.data))
    yield from header_cases(base)
    yield from block_cases(base)
    yield from truncation_cases(base)
    yield from sam_cases()
    yield from other_cases(base)


# Random damage


def damage_bytes(rng, data):
    """Changes, inserts, removes or doubles bytes at a random place."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        data = data or bytearray(1)
        at, size = rng.randrange(len(data)), rng.choice((1, 1, 2, 4, 8, 100))
        kind = rng.randrange(6)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff, rng.randrange(256)))
        elif kind == 2:
            del data[at : at + size]
        elif kind == 3:
            data[at:at] = rng.randbytes(size)
        elif kind == 4:
            data[at:at] = data[at : at + size]
        else:
            value = struct.pack("<I", rng.choice(EDGES))
            data[at : at + 4] = value
    return bytes(data)


def damage_record(rng, base):
    """A record with wrong values in its fields."""
    raw = bytearray(rng.choice(base.records))
    for _ in range(rng.choice((1, 1, 2, 3))):
        if rng.random() < 0.6:
            offset, code, _ = rng.choice(FIELDS)
            most = (1 << (8 * struct.calcsize(code))) - 1
            value = rng.choice([edge for edge in EDGES if edge <= most] + [rng.randrange(most + 1)])
            struct.pack_into("<" + code, raw, offset, value)
        else:
            raw = bytearray(damage_bytes(rng, bytes(raw)))
            raw += b"\0" * (40 - len(raw))
    if rng.random() < 0.5:
        struct.pack_into("<I", raw, 0, len(raw) - 4)
    return base.with_record(raw)


def damage_blocks(rng, base):
    """Moves, removes, doubles or damages blocks."""
    blocks = list(base.blocks)
    for _ in range(rng.choice((1, 1, 2))):
        i, k = rng.randrange(len(blocks)), rng.randrange(len(blocks))
        kind = rng.randrange(5)
        if kind == 0:
            blocks[i], blocks[k] = blocks[k], blocks[i]
        elif kind == 1:
            del blocks[i]
        elif kind == 2:
            blocks.insert(i, blocks[k])
        elif kind == 3:
            blocks[i] = damage_bytes(rng, blocks[i])
        else:
            blocks.insert(i, bamfile.bgzf_block(rng.randbytes(rng.choice((0, 1, 30, 400)))))
    return b"".join(blocks) + (bamfile.EOF_BLOCK if rng.random() < 0.9 else b"")


def random_case(rng, base):
    kind = rng.randrange(7)
    if kind == 0:
        return Case("bytes of the file", "bam", damage_bytes(rng, base.bam))
    if kind == 1:
        return Case("blocks", "bam", damage_blocks(rng, base))
    if kind in (2, 3):
        return Case("a record", "bam", damage_record(rng, base))
    if kind == 4:
        return Case("content", "bam", base.with_raw(damage_bytes(rng, base.raw)))
    if kind == 5:
        return Case("the header", "bam", base.with_header(damage_bytes(rng, base.head)))
    text = generate.odd(60, seed=rng.randrange(1000)).encode()
    return Case("SAM text", "sam", damage_bytes(rng, text))
