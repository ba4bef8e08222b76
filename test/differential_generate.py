"""Random inputs for the differential test. The same random numbers give the same input.

There are four profiles: `any` has all that the formats allow, `template` has pairs with the MC, MI
and RG tags that template-coordinate order needs, `unmapped` has reads of a small genome that can be
clustered by minimisers, and `realistic` is like sequencing data. All have many equal keys, because
only these show whether a sort is stable. Most records have their number in an XI tag.
"""

import dataclasses
import string

import generate
from bamfile import sq_text
from differential_model import LIMITS, ON_REFERENCE, Record, cigar_length, cigar_text
from differential_twists import draw_twist

SORT_TAGS = ("XT", "NM", "AS", "RG", "BC", "FI", "a0")
MANY_REFS = 70000
MANY_OPS = 66000
MAX_POS = 2**31 - 2
REF_NAMES = ("chr10", "chr2", "chr1", "x", "HLA*01:01=a", "1", "01", "MT", "c|d", "~")
REF_LENGTHS = (1, 2, 200, 3000, 70000, 10**6, 2**29 - 1, 2**29, 2**31 - 1, 2**31 - 1)
FLOATS = (0.0, -0.0, 0.5, -0.5, 1.0, 3.0, 100.0, 1e-40, -1e10, 1e10, 16777216.0, 3.4e38, -3.4e38)
PRINTABLE = string.digits + string.ascii_letters + string.punctuation
PADDING = "".join(chr(33 + i * i % 89) for i in range(97)) * 700
COMPLEMENT = str.maketrans("ACGT", "TGCA")


@dataclasses.dataclass
class Input:
    """What is sorted: header lines (including @SQ), references, and records."""

    header: list
    refs: list  # [(name, length)]
    records: list
    sort_tag: str = "XT"
    genome: list = dataclasses.field(default_factory=list)  # [(name, bases)] for -I
    profile: str = "any"
    line_end: str = "\n"  # the end of each line of SAM
    tail: str = ""  # text after the last line of SAM
    specials: list = dataclasses.field(default_factory=list)  # names of its rare features


@dataclasses.dataclass
class Shape:
    profile: str = "any"
    n_records: int = 10
    pad_bytes: int = 0  # extra bytes of each record
    for_bam: bool = False  # may have what only BAM can express
    for_cram: bool = False  # has only what CRAM keeps
    many_refs: bool = False
    many_ops: bool = False
    broken: bool = False  # tags that template-coordinate order must refuse
    twisted: bool = False  # SAM text that is unusual or wrong


def one_in(rng, n):
    """True with a probability of 1/n."""
    return rng.random() * n < 1


# Header


def hd_line(rng):
    """An @HD line of any kind, or none."""
    if one_in(rng, 4):
        return []
    fields = [] if one_in(rng, 20) else ["VN:" + rng.choice(("1.6", "1.0", "1.5", "1.4"))]
    extra = []
    if one_in(rng, 2):
        extra.append("SO:" + rng.choice(("unsorted", "unknown", "coordinate", "queryname")))
    if one_in(rng, 4):
        extra.append("GO:" + rng.choice(("query", "none", "reference")))
    if one_in(rng, 4):
        extra.append("SS:" + rng.choice(("coordinate:minhash", "unsorted:template-coordinate",
                                         "queryname:natural", "queryname:lexicographical")))
    if one_in(rng, 8):
        extra.append("xx:kept")
    rng.shuffle(extra)
    return ["\t".join(["@HD"] + fields + extra)] if fields or extra else []


def pg_lines(rng):
    """Some chains of @PG lines; their IDs can collide with those that the programs add."""
    names = ["bwa", "samtools", "samtools.1", "rocksort", "samtools-rocksort", "dup", "x.1"]
    rng.shuffle(names)
    out, used = [], []
    for name in names[: rng.choice((0, 0, 1, 1, 2, 3, 7))]:
        line = f"@PG\tID:{name}\tPN:{name.split('.')[0]}"
        if used and one_in(rng, 2):
            line += "\tPP:" + rng.choice(used)
        if one_in(rng, 2):
            line += "\tVN:1\tCL:run this -x"
        used.append(name)
        out.append(line)
    return out


def make_header(rng, refs, groups, plain_first):
    """The header lines; @HD is almost always first, the others are in usual or random order."""
    rest = sq_text(refs).splitlines()
    if len(refs) <= 20:
        rest = [line + rng.choice(("", "", "", "\tSP:x y", "\tM5:" + "0123456789abcdef" * 2))
                for line in rest]
    rest += groups + pg_lines(rng)
    n_comments = 3000 if one_in(rng, 200) else rng.choice((0, 0, 0, 1, 2, 5))
    rest += ["@CO\t" + rng.choice(("", "words", "with\ttab", "SO:coordinate", "x" * 300))
             for _ in range(n_comments)]
    if not plain_first and one_in(rng, 3):
        # The @SQ lines keep the order of refs.
        places = [i for i, line in enumerate(rest) if line.startswith("@SQ")]
        others = [line for line in rest if not line.startswith("@SQ")]
        rng.shuffle(others)
        cut = rng.randint(0, len(others))
        rest = others[:cut] + [rest[i] for i in places] + others[cut:]
    head = hd_line(rng)
    return rest + head if not plain_first and one_in(rng, 50) else head + rest


def make_refs(rng, n_refs, longest):
    """References of all lengths, not sorted by name."""
    if n_refs > 20:
        return [(f"c{i}", 1000) for i in range(n_refs)]
    names = list(REF_NAMES) + [f"ref{i:02}" for i in range(20)]
    rng.shuffle(names)
    return [(name, min(rng.choice(REF_LENGTHS), longest)) for name in names[:n_refs]]


def make_groups(rng):
    """@RG lines; several have the same library, some have none."""
    ids = ["g1", "g2", "g10", "G", "g 3", "x:y"]
    out = []
    for name in ids[: rng.choice((0, 1, 2, 4, 6))]:
        library = rng.choice(("", "\tLB:lib1", "\tLB:lib10", "\tLB:lib2", "\tLB:", "\tLB:A b"))
        library = "" if library == "\tLB:" else library
        sample = "\tSM:s" if one_in(rng, 2) else ""
        out.append("\t".join(["@RG", "ID:" + name]) + rng.choice((library + sample,
                                                                   sample + library)))
    return out


# Names


def stem_name(rng):
    """A stem, digits with leading zeros, and a tail, which natural order compares separately."""
    return (rng.choice(("", "a", "a", "b", "a.", "z")) + "0" * rng.choice((0, 0, 1, 2, 5)) +
            str(rng.choice((0, 1, 2, 9, 10, 11, 99, 100, 2**31, 2**32, 2**63, 2**64))) +
            rng.choice(("", "", "a", "0a", "-", ":0", ".1", ".01")))


def printable_name(rng):
    """A name of any characters that SAM allows."""
    size = rng.choice((1, 2, 3, 10, 253, 254))
    name = "".join(rng.choices(PRINTABLE, k=size))
    return "n" + name[1:] if name[0] == "@" else name


def digits_name(rng):
    """Long runs of digits that differ only in the last digits or in leading zeros."""
    zeros, size = rng.choice((0, 0, 1, 30, 200)), rng.choice((1, 18, 19, 20, 21, 50))
    return "0" * zeros + rng.choice("129") * size + rng.choice(("", "0", "1", "x"))


def binary_name(rng):
    """Bytes above 127 and below 33, which have been found in BAM files."""
    return "".join(rng.choices("a0\x01\x7f\x80\xb2\xff ", k=rng.randint(0, 6)))


def make_names(rng, shape):
    """The names that records get; they are few, so that many records have the same name."""
    kinds = [generate.odd_name, stem_name, stem_name, printable_name, digits_name]
    if shape.for_bam and one_in(rng, 8):
        kinds = [binary_name]
    chosen = rng.sample(kinds, min(len(kinds), rng.choice((1, 2, 5))))
    size = rng.choice((1, 3, 20, max(1, shape.n_records // 3), shape.n_records + 1))
    return [rng.choice(chosen)(rng) for _ in range(min(size, 1000))]


# Tags


def number_value(rng, kind):
    """A value of a numeric tag type, often one that other records have, too."""
    if kind in "fd":
        return rng.choice(FLOATS) if one_in(rng, 2) else float(rng.randint(-2, 3))
    low, high = LIMITS[kind]
    value = rng.choice((low, high, low + 1, high - 1, 0, 1, 2, 3, -1, rng.randint(low, high),
                        rng.randint(-300, 300)))
    return min(max(value, low), high)


def tag_value(rng, kind):
    if kind in LIMITS or kind in "fd":
        return number_value(rng, kind)
    if kind == "A":
        return rng.choice("!09AZa~")
    if kind == "Z":
        return rng.choice(("", "a", "b", "ab", "a b", "A", "10", "9", "09", "x" * 50, "g1", "g2"))
    if kind == "H":
        return rng.choice(("", "00", "1AE3", "1A", "FF"))
    return [number_value(rng, kind[1]) for _ in range(rng.choice((0, 1, 2, 3, 30)))]


def tag_kinds(rng, for_bam):
    """The types that the sort tag has in an input: one, some, or all types."""
    kinds = ["A", "c", "C", "s", "S", "i", "I", "f", "Z", "H", "Bc", "BS", "Bf"]
    if for_bam:
        kinds.append("d")
    chosen = rng.choice((["i"], ["Z"], ["f"], ["A"], ["H", "Z"], ["c", "C", "s", "S", "i", "I"],
                         ["i", "f"], kinds, kinds))
    return chosen


def odd_tags(rng, for_bam):
    tags = []
    for kind in ("A", "c", "C", "s", "S", "i", "I", "f", "Z", "H", "Bc", "BC", "Bs", "BS", "Bi",
                 "BI", "Bf") + (("d",) if for_bam else ()):
        if one_in(rng, 12):
            tags.append((("B" if kind[0] == "B" else "Y") + kind[-1], kind, tag_value(rng, kind)))
    return tags


# Alignments


def make_cigar(rng, n_bases, clips=True):
    """A CIGAR for a read of n_bases bases, or any CIGAR if n_bases is 0."""
    left = n_bases or rng.randint(1, 60)
    soft = [rng.randint(1, max(1, left // 3)) if clips and one_in(rng, 3) and left > 3 else 0
            for _ in range(2)]
    if sum(soft) >= left:
        soft = [0, 0]
    left -= sum(soft)
    middle = []
    while left > 0:
        size = left if one_in(rng, 2) else rng.randint(1, left)
        middle.append((size, rng.choice("MMMM=X") if not middle or middle[-1][1] == "I" or
                       left == size else rng.choice("MI=")))
        left -= size
        if left and one_in(rng, 3):
            middle.append((rng.choice((1, 2, 3, 5000)), rng.choice("DNP")))
    hard = [rng.choice((1, 5, 300)) if clips and one_in(rng, 5) else 0 for _ in range(2)]
    ends = [[(hard[0], "H"), (soft[0], "S")], [(soft[1], "S"), (hard[1], "H")]]
    return [item for item in ends[0] + middle + ends[1] if item[0]]


def random_seq(rng, n_bases, odd=True):
    """Random bases, sometimes with ambiguity codes."""
    letters = "ACGTN" if not odd or not one_in(rng, 6) else "=ACMGRSVTWYHKDBN"
    return "".join(rng.choices(letters, k=n_bases))


def random_qual(rng, n_bases):
    """Random qualities, or sometimes none."""
    if n_bases == 0 or one_in(rng, 5):
        return None
    # In SAM a single quality of 9 is written as *, which means no qualities.
    return bytes(q if n_bases > 1 or q != 9 else 10
                 for q in rng.choices((0, 2, 9, 30, 40, 41, 93), k=n_bases))


def hot_places(rng, refs):
    """The few positions that most records of an input have."""
    out = []
    for _ in range(rng.choice((1, 2, 5))):
        tid = rng.randrange(len(refs))
        pos = rng.choice((0, refs[tid][1] - 1, rng.randrange(refs[tid][1])))
        out.append((tid, min(pos, MAX_POS)))
    return out


def random_place(rng, refs, hot):
    """A random position, mostly near a hot one."""
    if hot and not one_in(rng, 3):
        tid, pos = rng.choice(hot)
        if one_in(rng, 3):
            pos += rng.choice((-1, 1, 2, 100))
    else:
        tid = rng.randrange(len(refs))
        pos = rng.randrange(refs[tid][1])
    return tid, min(max(pos, 0), min(refs[tid][1] - 1, MAX_POS))


def any_place(rng, data, hot, shape):
    """(tid, pos, flag): a position or none, and the flag bits that it needs."""
    flag = rng.randrange(0x10000 if one_in(rng, 50) else 0x1000)
    kind = rng.random()
    if not data.refs or kind < 0.12 or shape.for_cram and kind < 0.18:
        return -1, -1, flag | 4
    if kind < 0.16:  # positions without a reference
        return -1, rng.choice((0, 4, 4, 999, MAX_POS)), flag | 4
    if kind < 0.18:  # a reference without a position
        return rng.randrange(len(data.refs)), -1, flag | 4
    return *random_place(rng, data.refs, hot), flag


def any_record(rng, data, hot, shape):
    """A record with anything that the formats allow."""
    tid, pos, flag = any_place(rng, data, hot, shape)
    n_bases = rng.choice((0, 0, 1, 2, 35, 36, 80))
    cigar = make_cigar(rng, n_bases) if not flag & 4 or one_in(rng, 10) else []
    if shape.for_cram and flag & 4:
        cigar = []
    if shape.for_cram and pos >= 0 and tid >= 0:
        pos = max(0, min(pos, data.refs[tid][1] - cigar_length(cigar, ON_REFERENCE)))
    mate_tid = rng.choice((-1, tid, rng.randrange(-1, len(data.refs))))
    mate = (-1, -1, 0)
    if mate_tid >= 0:
        mate = (mate_tid, rng.choice((-1, 0, 4, 76, max(pos, 0))), rng.choice((0, 50, -500)))
    record = Record("", flag, tid, pos, rng.choice((0, 0, 1, 30, 60, 255)), cigar,
                    random_seq(rng, n_bases, not shape.for_cram), random_qual(rng, n_bases), mate,
                    odd_tags(rng, shape.for_bam))
    if shape.for_bam and one_in(rng, 30):
        record.bin = rng.choice((0, 4680, 4681, 65535))
    return record


def make_any(rng, data, shape):
    names, hot = make_names(rng, shape), hot_places(rng, data.refs) if data.refs else []
    for _ in range(shape.n_records):
        record = any_record(rng, data, hot, shape)
        record.name = rng.choice(names)
        data.records.append(record)
    if shape.many_ops and data.records:
        record = rng.choice(data.records)
        record.cigar = [(1, "MI"[i % 2]) for i in range(MANY_OPS)]
        record.flag &= ~4
        record.seq, record.qual = "A" * MANY_OPS, None


# Templates


def group_tags(rng, groups):
    """RG: a known one, an unknown one, or none."""
    if one_in(rng, 4):
        return []
    known = [line.split("\t")[1][3:] for line in groups]
    return [("RG", "Z", rng.choice(known + known + ["nobody"]))]


def template_end(rng, data, hot):
    """One end of a template as a record: placed, or unmapped."""
    n_bases = rng.choice((0, 20, 20, 50))
    record = Record("", 0, seq=random_seq(rng, n_bases), qual=random_qual(rng, n_bases))
    if one_in(rng, 8):
        record.flag = 4 | rng.choice((0, 0, 0x10))
        return record
    record.tid, record.pos = random_place(rng, data.refs, hot)
    record.cigar = make_cigar(rng, n_bases)
    record.flag, record.mapq = rng.choice((0, 0x10)), rng.choice((0, 60))
    return record


def point_at_mate(record, mate):
    """Fills in the fields and tags of a record that describe its mate, including MC."""
    record.flag |= (8 if mate.flag & 4 else 0) | (0x20 if mate.flag & 0x10 else 0)
    record.mate = (mate.tid, mate.pos, 0)
    if not mate.flag & 4:
        record.tags.append(("MC", "Z", cigar_text(mate.cigar)))


def make_template(rng, data, hot, common):
    """The records of one template: a pair or a single read, and copies at other positions."""
    if one_in(rng, 6):
        ends = [template_end(rng, data, hot)]
        ends[0].flag |= rng.choice((0, 0, 0x200, 0x400))
    else:
        ends = [template_end(rng, data, hot), template_end(rng, data, hot)]
        ends[0].flag |= 0x41
        ends[1].flag |= 0x81
        for one, other in (ends, ends[::-1]):
            if one.flag & 4 and not other.flag & 4 and one_in(rng, 2):
                one.tid, one.pos = other.tid, other.pos
        point_at_mate(*ends)
        point_at_mate(*ends[::-1])
    for record in list(ends):
        record.tags += common
        if one_in(rng, 6):
            copy = dataclasses.replace(record, tags=list(record.tags))
            copy.flag |= rng.choice((0x100, 0x800, 0x800, 0x900))
            if not copy.flag & 4:
                copy.tid, copy.pos = random_place(rng, data.refs, hot)
            ends.append(copy)
    return ends


def break_tags(rng, records):
    """Breaks the tags of one record so that the program may have to refuse the input."""
    record = rng.choice(records)
    name = rng.choice(("MC", "MC", "MI", "RG"))
    record.tags = [tag for tag in record.tags if tag[0] != name]
    if name != "MC" or one_in(rng, 2):
        record.tags.append((name,) + rng.choice((("i", 5), ("A", "x"), ("Bc", [1]))))


def make_templates(rng, data, shape):
    groups = [line for line in data.header if line.startswith("@RG")]
    hot, names = hot_places(rng, data.refs), make_names(rng, shape)
    molecules = rng.choice((0, 1, 4, shape.n_records + 1))
    while len(data.records) < shape.n_records:
        common = group_tags(rng, groups)
        if molecules and not one_in(rng, 5):
            number = rng.choice((str(rng.randrange(molecules)), rng.choice(("", "a b", "x/"))))
            common.append(("MI", "Z", number + rng.choice(("", "", "/A", "/B", "/AB", "/"))))
        if one_in(rng, 3):
            common.append(("CB", "Z", rng.choice(("", "A", "AC", "AC-1", "C", "a"))))
        records = make_template(rng, data, hot, common)
        name = rng.choice(names)
        for record in records:
            record.name = name
        data.records += records
    del data.records[shape.n_records :]
    rng.shuffle(data.records)
    if shape.broken and data.records:
        break_tags(rng, data.records)


# Unmapped reads


def make_genome(rng):
    """A few references with homopolymers and repeats. One in four has more bases than are read at a
    time."""
    out, long_parts = [], (70_000,) * one_in(rng, 4)
    for i in range(rng.choice((1, 1, 2, 3))):
        parts = []
        for _ in range(rng.randint(2, 8)):
            part = random_seq(rng, rng.choice((30, 100, 300, *long_parts)), False)
            parts += [part] * rng.choice((1, 1, 1, 2))
            parts.append(rng.choice("ACGT") * rng.choice((0, 0, 12, 40)))
        out.append((f"g{i}", "".join(parts).replace("N", "A")))
    return out


def genome_read(rng, genome):
    """Bases of either strand with a few errors; sometimes fewer than a k-mer has."""
    seq = rng.choice(genome)[1]
    size = rng.choice((0, 1, 5, 9, 10, 19, 20, 21, 40, 75, 75, 150))
    begin = rng.randrange(max(1, len(seq) - size))
    bases = seq[begin : begin + size]
    if one_in(rng, 2):
        bases = bases.translate(COMPLEMENT)[::-1]
    if bases and one_in(rng, 4):
        at = rng.randrange(len(bases))
        bases = bases[:at] + rng.choice("ACGTN") + bases[at + 1 :]
    return bases


def make_unmapped(rng, data, shape):
    """Profile unmapped: most reads are unplaced, some are placed."""
    names, only_unmapped = make_names(rng, shape), one_in(rng, 3)
    hot = hot_places(rng, data.refs) if data.refs else []
    for _ in range(shape.n_records):
        if data.refs and not only_unmapped and one_in(rng, 5):
            record = any_record(rng, data, hot, shape)
        else:
            bases = genome_read(rng, data.genome)
            record = Record("", 4 | rng.choice((0, 0, 0, 0x49, 0x89, 0x10)), seq=bases,
                            qual=random_qual(rng, len(bases)))
            if one_in(rng, 40) and not shape.for_cram:
                record.pos = rng.choice((0, 5))
        record.name = rng.choice(names)
        data.records.append(record)


# Sequencing


def make_reads(rng, data, shape):
    """Profile realistic: pairs of reads of one length from the references, in random order."""
    groups = [line for line in data.header if line.startswith("@RG")]
    for i in range((shape.n_records + 1) // 2):
        common = group_tags(rng, groups)
        tid = rng.randrange(len(data.refs)) if data.refs else -1
        if tid < 0 or data.refs[tid][1] < 300 or one_in(rng, 20):
            ends = [(77, -1, -1, (-1, -1, 0)), (141, -1, -1, (-1, -1, 0))]
        else:
            begin = rng.randrange(min(data.refs[tid][1], 2**31 - 1) - 299)
            ends = [(99, tid, begin, (tid, begin + 200, 300)),
                    (147, tid, begin + 200, (tid, begin, -300))]
        for flag, tid_, pos, mate in ends:
            record = Record(f"run:1:{rng.randint(8, 11)}:{i}", flag, tid_, pos, 60 * (tid_ >= 0),
                            [(100, "M")] * (tid_ >= 0), random_seq(rng, 100, False),
                            random_qual(rng, 100), mate, list(common))
            if tid_ >= 0:
                record.tags += [("NM", "C", rng.randrange(5)), ("AS", "i", rng.randrange(100))]
                record.tags.append(("MC", "Z", "100M"))
            data.records.append(record)
    rng.shuffle(data.records)
    del data.records[shape.n_records :]


MAKERS = {"any": make_any, "template": make_templates, "unmapped": make_unmapped,
          "realistic": make_reads}


def add_tags(rng, data, shape):
    """Adds the sort tag, the number of the record, and the tag that makes a record large."""
    kinds, missing = tag_kinds(rng, shape.for_bam), rng.choice((0, 0.1, 0.5))
    numbered, double = not one_in(rng, 5), not shape.for_cram and one_in(rng, 20)
    for number, record in enumerate(data.records):
        if not any(tag[0] == data.sort_tag for tag in record.tags) and rng.random() >= missing:
            for _ in range(1 + double):
                kind = rng.choice(kinds)
                record.tags.append((data.sort_tag, kind, tag_value(rng, kind)))
        if numbered:
            record.tags.append(("XI", "I", number))
        if shape.pad_bytes:
            begin = rng.randrange(97)
            size = min(rng.randint(0, 2 * shape.pad_bytes), len(PADDING) - begin)
            record.tags.append(("XP", "Z", PADDING[begin : begin + size]))


def make_input(rng, shape):
    n_refs = MANY_REFS if shape.many_refs else rng.choice((0, 1, 2, 3, 5, 20))
    if shape.profile == "template":
        n_refs = max(1, n_refs)
    # htslib cannot read a CRAM with positions beyond 2^31, and templates may reach beyond the end
    # of their reference.
    longest = 2**29 if shape.for_cram and shape.profile == "template" else MAX_POS + 1
    refs, genome = make_refs(rng, n_refs, longest), []
    if shape.profile == "unmapped":
        genome = make_genome(rng)
        refs = [(name, len(bases)) for name, bases in genome] if one_in(rng, 2) else refs
    header = make_header(rng, refs, make_groups(rng), shape.for_cram)
    data = Input(header, refs, [], rng.choice(SORT_TAGS), genome, shape.profile)
    if shape.profile == "template" and data.sort_tag == "RG":
        data.sort_tag = "XT"
    if shape.for_bam and one_in(rng, 30):  # BAM also has them in binary form
        data.header = [line for line in data.header if not line.startswith("@SQ")]
    MAKERS[shape.profile](rng, data, shape)
    add_tags(rng, data, shape)
    if shape.twisted:
        draw_twist(rng, data)
    data.specials = [name for name in ("many_refs", "many_ops", "broken", "twisted")
                     if getattr(shape, name)]
    return data
