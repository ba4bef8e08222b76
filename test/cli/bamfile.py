"""BAM and BGZF in plain Python: reads results back and writes inputs, sound and broken ones.

Nothing here uses htslib, so that a bug in htslib (or in how we use it) cannot hide itself. A BAM
is read into memory as a whole; the files of the tests have a few megabytes.
"""

import gzip
import io
import os
import struct
import zlib
from collections import namedtuple

EOF_BLOCK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
SEQ_CODES = "=ACMGRSVTWYHKDBN"
SEQ_INDEX = {base: code for code, base in enumerate(SEQ_CODES)}
CIGAR_INDEX = {op: code for code, op in enumerate("MIDNSHP=X")}
# htslib puts at most so many bytes into a block, so that incompressible data fits, too.
BLOCK_PAYLOAD_BYTES = 0xFF00

Bam = namedtuple("Bam", "text refs records")  # str, [(name, length)], raw bytes of all the records


def bgzf_block(payload, level=1):
    deflate = zlib.compressobj(level, zlib.DEFLATED, -15)
    data = deflate.compress(payload) + deflate.flush()
    header = struct.pack("<4BI2BH2BHH", 31, 139, 8, 4, 0, 0, 255, 6, 66, 67, 2, len(data) + 25)
    return header + data + struct.pack("<II", zlib.crc32(payload), len(payload))


def bgzf_blocks(data, level=1, step=BLOCK_PAYLOAD_BYTES):
    """data as a list of BGZF blocks of so many bytes, without the empty block at the end."""
    return [bgzf_block(data[i : i + step], level) for i in range(0, len(data), step)]


def bgzf(data, level=1, step=BLOCK_PAYLOAD_BYTES):
    """data as a complete BGZF file, in blocks of so many bytes."""
    return b"".join(bgzf_blocks(data, level, step)) + EOF_BLOCK


def bgzf_block_offsets(data):
    """The offset of each block of a BGZF file, and at last the size of the file."""
    offsets, at = [], 0
    while at < len(data):
        offsets.append(at)
        at += struct.unpack_from("<H", data, at + 16)[0] + 1
    return offsets + [at]


def reg2bin(begin, end):
    """The bin of [begin, end) by the formula of the SAM specification."""
    end -= 1
    for shift, first in ((14, 4681), (17, 585), (20, 73), (23, 9), (26, 1)):
        if begin >> shift == end >> shift:
            return first + (begin >> shift)
    return 0


def record(name="r", flag=4, tid=-1, pos=-1, cigar="", seq="", aux=b"", mapq=0, mate=(-1, -1, 0)):
    """One raw BAM record that begins with its length. It has no qualities (all are 0xff)."""
    ops, number, reach = [], "", 0
    for char in cigar:
        if char.isdigit():
            number += char
        else:
            ops.append(int(number) << 4 | CIGAR_INDEX[char])
            reach += int(number) if char in "MDN=X" else 0
            number = ""
    codes = [SEQ_INDEX[base] for base in seq] + [0]
    packed = bytes(codes[i] << 4 | codes[i + 1] for i in range(0, len(seq), 2))
    qname = name.encode("latin-1") + b"\0"
    bin_number = reg2bin(pos, pos + (reach or 1)) & 0xffff      # of places above 2^29, too
    fixed = struct.pack("<iiBBHHHiiii", tid, pos, len(qname), mapq, bin_number, len(ops), flag,
                        len(seq), *mate)
    body = fixed + qname + struct.pack(f"<{len(ops)}I", *ops) + packed + b"\xff" * len(seq) + aux
    return struct.pack("<i", len(body)) + body


def padded(raw, after_name):
    """The record with more bytes after the NUL of its name."""
    end = 36 + raw[12]
    raw = raw[:12] + bytes([raw[12] + len(after_name)]) + raw[13:end] + after_name + raw[end:]
    return struct.pack("<i", len(raw) - 4) + raw[4:]


def bam_header(text, refs):
    """The uncompressed bytes of a BAM before its first record."""
    out = [b"BAM\1", struct.pack("<i", len(text)), text.encode(), struct.pack("<i", len(refs))]
    for name, length in refs:
        raw = name.encode() + b"\0"
        out.append(struct.pack("<i", len(raw)) + raw + struct.pack("<i", length))
    return b"".join(out)


def bam_file(text, refs, records):
    """The bytes of a BAM file. The records begin in a block of their own, as htslib writes them."""
    return b"".join(bgzf_blocks(bam_header(text, refs))) + bgzf(b"".join(records))


def sq_text(refs):
    return "".join(f"@SQ\tSN:{name}\tLN:{length}\n" for name, length in refs)


def parse(raw):
    """Makes a Bam from uncompressed BAM bytes."""
    if raw[:4] != b"BAM\1":
        raise ValueError("not a BAM")
    n_text = struct.unpack_from("<i", raw, 4)[0]
    text = raw[8 : 8 + n_text].rstrip(b"\0").decode()
    at = 8 + n_text
    n_refs = struct.unpack_from("<i", raw, at)[0]
    at += 4
    refs = []
    for _ in range(n_refs):
        n_name = struct.unpack_from("<i", raw, at)[0]
        name = raw[at + 4 : at + 3 + n_name].decode()
        refs.append((name, struct.unpack_from("<i", raw, at + 4 + n_name)[0]))
        at += 8 + n_name
    return Bam(text, refs, raw[at:])


def parse_file(data):
    """Makes a Bam from the bytes of a BAM file, which must end with the EOF block."""
    if not data.endswith(EOF_BLOCK):
        raise ValueError("no end-of-file block")
    # gzip.decompress copies all that is left for each block.
    return parse(gzip.GzipFile(fileobj=io.BytesIO(data)).read())


def read(path):
    with open(path, "rb") as file:
        return parse_file(file.read())


def split(records):
    """Splits records into a list of raw records; each begins with its length."""
    out, at = [], 0
    while at < len(records):
        size = struct.unpack_from("<i", records, at)[0] + 4
        out.append(records[at : at + size])
        at += size
    return out


def fields(raw):
    """(tid, pos, flag, name) of one raw record."""
    tid, pos, n_name = struct.unpack_from("<iiB", raw, 4)
    flag = struct.unpack_from("<H", raw, 18)[0]
    return tid, pos, flag, raw[36 : 35 + n_name]


def n_cigar(raw):
    return struct.unpack_from("<H", raw, 16)[0]


def looks_complete(path):
    """Whether a reader would take the BAM at path for a complete file."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        data = file.read()
    try:
        parse_file(data)
    except (ValueError, EOFError, OSError, zlib.error, struct.error):
        return False
    return True
