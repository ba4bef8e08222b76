"""Which records --markdup marks, by brute force: every read is compared with every other one of its
key. For options that samtools does not have; the model itself is compared with samtools without
them."""

import collections
import re

PAIRED, UNMAP, MUNMAP, REVERSE, MREVERSE, READ1, SECONDARY, QCFAIL, SUPPLEMENTARY = (
    1, 4, 8, 16, 32, 64, 256, 512, 2048)
Read = collections.namedtuple("Read", "place name flag single pair score barcode")


def unclipped(pos, cigar):
    """The first and the last base of an alignment, clipped bases too; and its position."""
    ops = [(int(n), op) for n, op in re.findall(r"(\d+)([MIDNSHP=X])", cigar)]
    clips = [0, 0]
    for side, order in enumerate((ops, ops[::-1])):
        for n, op in order:
            if op not in "SH":
                break
            clips[side] += n
    length = sum(n for n, op in ops if op in "MDN=X")
    return pos - clips[0], pos + max(length, 1) - 1 + clips[1], pos


def pair_key(flag, refs, own, mate, mode):
    """What must be equal of two members of pairs; the last element is the orientation. refs: of the
    read and its mate; own, mate: what unclipped() says of them."""
    strands = [bool(flag & REVERSE), bool(flag & MREVERSE)]
    fives = own[strands[0]], mate[strands[1]]
    here, there = fives
    if refs[0] != refs[1]:
        left = refs[0] < refs[1]
    elif mode == "s":
        left = (fives[0], own[2], not flag & READ1) < (fives[1], mate[2], bool(flag & READ1))
    elif strands[0] == strands[1]:
        left = own[strands[0]] <= mate[strands[0]]
    else:
        left = fives[0] <= fives[1]
    if mode == "t" and strands[0] == strands[1]:
        here, there = (own[0], mate[1]) if left else (own[1], mate[0])
    ordered = strands if left else strands[::-1]
    if mode == "t" and strands[0] == strands[1]:    # which read is the first one counts
        ordered = [(bool(flag & READ1) != strands[0]) == left, "first"]
    return refs, here, there, left, tuple(ordered)


def reads_of(lines, mode, ignore_strand, refs, barcode=None):
    """The examined reads among lines of SAM in the order of the sorted file."""
    for place, line in enumerate(lines):
        fields = line.split("\t")
        flag, tags = int(fields[1]), {field[:2]: field[5:] for field in fields[:10:-1]}
        if flag & (UNMAP | SECONDARY | SUPPLEMENTARY | QCFAIL):
            continue
        own = unclipped(int(fields[3]), fields[5])
        score = sum(ord(c) - 33 for c in fields[10] if ord(c) >= 48)
        if fields[10] == "*":
            score = 255 * len(fields[9]) * (fields[9] != "*")
        reverse = bool(flag & REVERSE)
        single = (fields[2], own[:2]) if ignore_strand else (fields[2], own[reverse], reverse)
        pair = None
        if flag & PAIRED and not flag & MUNMAP and fields[6:8] != ["*", "0"]:
            mate_ref = fields[2] if fields[6] == "=" else fields[6]
            *key, orientation = pair_key(flag, (refs.index(fields[2]), refs.index(mate_ref)), own,
                                         unclipped(int(fields[7]), tags["MC"]), mode)
            pair = (*key, None if ignore_strand else orientation)
            score += int(tags["ms"])
        texts = [field[5:] for field in fields[11:] if field.startswith(f"{barcode}:Z:")]
        yield Read(place, fields[0], flag, single, pair, score, "".join(texts[:1]))


def clusters(counts):
    """{barcode: that of its cluster} by the directional method; counts: reads with each barcode."""
    joined = {}
    for first in sorted(counts, key=lambda text: (-counts[text], text)):
        todo = [] if first in joined else [first]
        joined.setdefault(first, first)
        while todo:
            one = todo.pop()
            for other in counts:
                if (other not in joined and counts[one] + 1 >= 2 * counts[other] and
                        sum(a != b for a, b in zip(one, other)) == 1):
                    joined[other] = first
                    todo.append(other)
    return joined


def with_barcodes(reads, field):
    """The reads; their key in this field has the barcode of their cluster."""
    counts = collections.defaultdict(collections.Counter)
    for read in reads:
        key = getattr(read, field), len(read.barcode)
        counts[key][read.barcode] += 1
    joined = {key: clusters(some) for key, some in counts.items()}
    for read in reads:
        key = getattr(read, field), len(read.barcode)
        yield read if key[0] is None else read._replace(
            **{field: (*key, joined[key][read.barcode])})


def marked(lines, refs, mode="t", ignore_strand=False, barcode=None):
    """The places in `lines` of the reads that are duplicates. barcode: a tag; one error in it does
    not count."""
    reads = list(reads_of(lines, mode, ignore_strand, refs, barcode))
    if barcode:
        reads = list(with_barcodes(list(with_barcodes(reads, "single")), "pair"))
    found = set()
    for a in reads:
        for b in reads:
            if a.pair is None:
                loses = a.single == b.single and (
                    b.pair is not None or (-b.score, b.place) < (-a.score, a.place))
            else:
                loses = a.pair == b.pair and (-b.score, b.name, b.place) < (-a.score, a.name,
                                                                            a.place)
            if loses:
                found.add(a.place)
                break
    return found
