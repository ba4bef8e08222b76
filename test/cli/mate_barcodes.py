"""What --fixmate makes of barcodes for --markdup: a primary record without the tag gets that of its
mate. The model copies the tags in the input, before anything else is done with it."""

import struct

import bamfile

SECONDARY, SUPPLEMENTARY = 256, 2048
NUMBER_BYTES = {"A": 1, "c": 1, "C": 1, "s": 2, "S": 2, "i": 4, "I": 4, "f": 4}


def find_tag(raw, tag):
    """The first tag of this name of a raw record, as it is stored, or b""."""
    n_name, n_ops, n_bases = raw[12], *struct.unpack_from("<H2xi", raw, 16)
    at = 36 + n_name + 4 * n_ops + (n_bases + 1) // 2 + n_bases
    while at < len(raw):
        begin, kind = at, chr(raw[at + 2])
        at += 3
        if kind in "ZH":
            at = raw.index(b"\0", at) + 1
        elif kind == "B":
            at += 5 + NUMBER_BYTES[chr(raw[at])] * struct.unpack_from("<i", raw, at + 1)[0]
        else:
            at += NUMBER_BYTES[kind]
        if raw[begin:begin + 2] == tag.encode():
            return raw[begin:at]
    return b""


def templates(records):
    """Lists of the numbers of the primary records of each template."""
    found, name = [], None
    for i, raw in enumerate(records):
        _, _, flag, own_name = bamfile.fields(raw)
        if own_name != name:
            found.append([])
        name = own_name
        if not flag & (SECONDARY | SUPPLEMENTARY):
            found[-1].append(i)
    return found


def copied_tags(records, tag):
    """{number of a record: the tag that it gets}. The first primary record of a template and each
    later one are mates; what the last one has told the first one counts."""
    own, copied = [find_tag(raw, tag) for raw in records], {}
    for first, *others in filter(None, templates(records)):
        for other in others:
            for to, mate in ((other, first), (first, other)):
                if not own[to] and own[mate][2:3] in (b"Z", b"H") and len(own[mate]) > 4:
                    copied[to] = own[mate]
    return copied


def fill(source, tag, out):
    """Copies a BAM that is grouped by name; its records get the tags."""
    bam = bamfile.read(source)
    records = bamfile.split(bam.records)
    for i, more in copied_tags(records, tag).items():
        raw = records[i]
        records[i] = struct.pack("<i", len(raw) - 4 + len(more)) + raw[4:] + more
    with open(out, "wb") as file:
        file.write(bamfile.bgzf(bamfile.bam_header(bam.text, bam.refs) + b"".join(records)))
