"""Alignment records as plain objects, which can be written as SAM text and as BAM.

The generator makes these objects, and the shrinker simplifies them, before they become bytes. The
same input can thus be written as SAM or as BAM, and BAM can have what SAM cannot express (a number
of type `s` that would fit into a `C`, a wrong bin). Nothing here uses htslib.
"""

import dataclasses
import struct

import bamfile

# {BAM type: code of struct} of the numeric tag types.
NUMBERS = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I", "f": "f", "d": "d"}
LIMITS = {"c": (-2**7, 2**7 - 1), "C": (0, 2**8 - 1), "s": (-2**15, 2**15 - 1),
          "S": (0, 2**16 - 1), "i": (-2**31, 2**31 - 1), "I": (0, 2**32 - 1)}
CIGAR_OPS = "MIDNSHP=X"
# The CIGAR operations that consume bases of the reference.
ON_REFERENCE = set("MDN=X")
MAX_FIELD_OPS = 0xFFFF
SEQ_PAIRS = {a + b: i << 4 | k for i, a in enumerate(bamfile.SEQ_CODES)
             for k, b in enumerate(bamfile.SEQ_CODES)}


@dataclasses.dataclass
class Record:
    """One alignment. Positions count from 0. Tags are (name, BAM type, value); the type of an array
    is "B" and the subtype, and its value is a list."""

    name: str
    flag: int = 4
    tid: int = -1
    pos: int = -1
    mapq: int = 0
    cigar: list = dataclasses.field(default_factory=list)  # [(length, operation)]
    seq: str = ""
    qual: bytes = None  # None: absent
    mate: tuple = (-1, -1, 0)  # tid, position, template length
    tags: list = dataclasses.field(default_factory=list)
    bin: int = None  # None: the right bin
    texts: dict = dataclasses.field(default_factory=dict)  # SAM column -> text that replaces it


def cigar_text(cigar):
    """The CIGAR as in SAM."""
    return "".join(f"{length}{op}" for length, op in cigar) or "*"


def cigar_length(cigar, ops):
    """The total length of the operations whose kind is in ops."""
    return sum(length for length, op in cigar if op in ops)


def number_text(value):
    return str(value) if isinstance(value, int) else "%.9g" % value


def tag_text(tag):
    """One tag as in SAM: all integers have type `i`, and there is no type `d`."""
    name, kind, value = tag
    if kind[0] == "B":
        return f"{name}:B:{kind[1]}" + "".join("," + number_text(item) for item in value)
    if kind in NUMBERS:
        return f"{name}:{'f' if kind in 'fd' else 'i'}:{number_text(value)}"
    return f"{name}:{kind}:{value}"


def sam_line(record, refs):
    def ref_name(tid):
        return refs[tid][0] if tid >= 0 else "*"

    mate_tid, mate_pos, length = record.mate
    mate_ref = "=" if mate_tid == record.tid >= 0 else ref_name(mate_tid)
    qual = "*" if record.qual is None else bytes(33 + q for q in record.qual).decode("latin-1")
    fields = [record.name, record.flag, ref_name(record.tid), record.pos + 1, record.mapq,
              cigar_text(record.cigar), mate_ref, mate_pos + 1, length, record.seq or "*",
              qual or "*"]
    fields = [record.texts.get(i, str(field)) for i, field in enumerate(fields)]
    fields += [record.texts[i] for i in sorted(record.texts) if i >= len(fields)]
    return "\t".join(fields + [tag_text(tag) for tag in record.tags])


def sam_bytes(data):
    lines = data.header + [sam_line(record, data.refs) for record in data.records]
    return ("".join(line + data.line_end for line in lines) + data.tail).encode("latin-1")


def tag_bytes(tag):
    name, kind, value = tag
    head = name.encode() + kind[:1].encode()
    if kind[0] == "B":
        code = NUMBERS[kind[1]]
        return head + struct.pack(f"<cI{len(value)}{code}", kind[1].encode(), len(value), *value)
    if kind in NUMBERS:
        return head + struct.pack("<" + NUMBERS[kind], value)
    return head + value.encode("latin-1") + (b"" if kind == "A" else b"\0")


def right_bin(record):
    """The bin of a record as htslib computes it: modulo 2^16 if the bin does not fit its field."""
    reach = 0 if record.flag & 4 else cigar_length(record.cigar, ON_REFERENCE)
    return bamfile.reg2bin(record.pos, record.pos + (reach or 1)) & 0xFFFF


def bam_record(record):
    """One raw BAM record that begins with its length. A CIGAR that is too long for its field is
    stored in a CG tag, as in the SAM specification."""
    n_bases, cigar, extra = len(record.seq), record.cigar, b""
    codes = [length << 4 | CIGAR_OPS.index(op) for length, op in cigar]
    if len(codes) > MAX_FIELD_OPS:
        extra = b"CGBI" + struct.pack(f"<I{len(codes)}I", len(codes), *codes)
        reach = cigar_length(cigar, ON_REFERENCE)
        codes = [n_bases << 4 | CIGAR_OPS.index("S"), reach << 4 | CIGAR_OPS.index("N")]
    number = right_bin(record) if record.bin is None else record.bin
    name = record.name.encode("latin-1") + b"\0"
    seq = record.seq + "=" * (n_bases % 2)
    packed = bytes(SEQ_PAIRS[seq[i : i + 2]] for i in range(0, n_bases, 2))
    qual = b"\xff" * n_bases if record.qual is None else record.qual
    body = struct.pack("<iiBBHHHiiii", record.tid, record.pos, len(name), record.mapq, number,
                       len(codes), record.flag, n_bases, *record.mate)
    body += name + struct.pack(f"<{len(codes)}I", *codes) + packed + qual
    body += b"".join(tag_bytes(tag) for tag in record.tags) + extra
    return struct.pack("<i", len(body)) + body


def bam_bytes(data):
    text = "".join(line + "\n" for line in data.header)
    return bamfile.bam_header(text, data.refs) + b"".join(map(bam_record, data.records))


def describe_tags(raw):
    """The tags in the bytes of a BAM record as text, with their BAM types."""
    out, at = [], 0
    while at < len(raw):
        name, kind = raw[at : at + 2].decode("latin-1"), chr(raw[at + 2])
        at += 3
        if kind == "B":
            kind += chr(raw[at])
            code = NUMBERS[kind[1]]
            count = struct.unpack_from("<I", raw, at + 1)[0]
            value = list(struct.unpack_from(f"<{count}{code}", raw, at + 5))
            at += 5 + count * struct.calcsize(code)
        elif kind in NUMBERS:
            value = struct.unpack_from("<" + NUMBERS[kind], raw, at)[0]
            at += struct.calcsize(NUMBERS[kind])
        else:
            end = at + 1 if kind == "A" else raw.index(b"\0", at)
            value = raw[at:end].decode("latin-1")
            at = end + (kind != "A")
        out.append(f"{name}:{kind}:{value}")
    return out


def describe(raw):
    """The fields of a raw BAM record as readable words."""
    tid, pos, n_name, mapq, number, n_ops, flag, n_bases, *mate = struct.unpack_from(
        "<iiBBHHHiiii", raw, 4)
    at = 36 + n_name
    ops = struct.unpack_from(f"<{n_ops}I", raw, at)
    at += 4 * n_ops
    pairs = {code: bases for bases, code in SEQ_PAIRS.items()}
    seq = "".join(pairs[code] for code in raw[at : at + (n_bases + 1) // 2])[:n_bases]
    at += (n_bases + 1) // 2
    qual, at = raw[at : at + n_bases].hex(), at + n_bases
    cigar = cigar_text([(op >> 4, CIGAR_OPS[min(op & 15, 8)]) for op in ops])
    return [repr(raw[36 : 35 + n_name].decode("latin-1")), f"flag {flag:#x}", f"bin {number}",
            f"tid {tid}", f"pos {pos}", f"mapq {mapq}", cigar,
            "mate %d %d %d" % tuple(mate), seq or "*", f"qual {qual}"] + describe_tags(raw[at:])


def shorten(words, limit=80):
    """Words on one line; long words are cut."""
    return "  ".join(word if len(word) <= limit else f"{word[:limit]}...({len(word)})"
                     for word in words)


def describe_pair(one, other):
    """A pair of texts with the fields in which two records or lines differ, and with the first
    field, which mostly is the name."""
    pair = [describe(item) if isinstance(item, bytes) else item.split("\t")
            for item in (one, other)]
    if len(pair[0]) == len(pair[1]):
        places = [0] + [i for i in range(1, len(pair[0])) if pair[0][i] != pair[1][i]]
        pair = [[words[i] for i in places] for words in pair]
    return [shorten(words, 400) for words in pair]
