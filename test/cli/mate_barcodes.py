"""What samtools markdup 1.24 would find if each read without barcode had that of its mate.

The barcode that each record should have is written to a tag of its own, by which samtools then
finds duplicates, and which is removed from its output.
"""

import struct

import bamfile

FILLED = "zq"
PAIRED, SECONDARY, SUPPLEMENTARY = 1, 256, 2048
NUMBER_BYTES = {"A": 1, "c": 1, "C": 1, "s": 2, "S": 2, "i": 4, "I": 4, "f": 4}


def text_tag(raw, tag):
    """The value of the first tag of this name of a raw record, if it is text and not empty."""
    n_name, n_ops, n_bases = raw[12], *struct.unpack_from("<H2xi", raw, 16)
    at = 36 + n_name + 4 * n_ops + (n_bases + 1) // 2 + n_bases
    while at < len(raw):
        name, kind = raw[at:at + 2].decode("latin-1"), chr(raw[at + 2])
        at += 3
        if kind in "ZH":
            end = raw.index(b"\0", at)
            if name == tag:
                return raw[at:end]
            at = end + 1
        elif name == tag:
            return b""
        elif kind == "B":
            at += 5 + NUMBER_BYTES[chr(raw[at])] * struct.unpack_from("<i", raw, at + 1)[0]
        else:
            at += NUMBER_BYTES[kind]
    return b""


def has_mate(raw):
    """Whether it is a primary record that says that it has a mate, and has a name."""
    _, _, flag, name = bamfile.fields(raw)
    return (flag & PAIRED and not flag & (SECONDARY | SUPPLEMENTARY) and name != b"*" and
            struct.unpack_from("<ii", raw, 24) != (-1, -1))


def fill(source, tag, out):
    """Copies a BAM; its records get the tag FILLED."""
    bam = bamfile.read(source)
    records, of_name, filled = bamfile.split(bam.records), {}, []
    for raw in records:
        barcode = text_tag(raw, tag)
        if barcode and has_mate(raw):
            of_name.setdefault(bamfile.fields(raw)[3], set()).add(barcode)
    for raw in records:
        barcode, of_mates = text_tag(raw, tag), of_name.get(bamfile.fields(raw)[3], ())
        if not barcode and has_mate(raw) and len(of_mates) == 1:
            barcode, = of_mates
        more = FILLED.encode() + b"Z" + barcode + b"\0" if barcode else b""
        filled.append(struct.pack("<i", len(raw) - 4 + len(more)) + raw[4:] + more)
    with open(out, "wb") as file:
        file.write(bamfile.bgzf(bamfile.bam_header(bam.text, bam.refs) + b"".join(filled)))


def n_half_tagged(path, tag):
    """How many reads of a BAM lack a barcode that a mate has."""
    records = [raw for raw in bamfile.split(bamfile.read(path).records) if has_mate(raw)]
    named = {bamfile.fields(raw)[3] for raw in records if text_tag(raw, tag)}
    return sum(bamfile.fields(raw)[3] in named and not text_tag(raw, tag) for raw in records)
