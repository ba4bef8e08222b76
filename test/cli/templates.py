"""Random input for --fixmate and --markdup: records of one template stand together, as an aligner
writes them. The same seed gives the same text.

There are pairs, single reads, orphans, chimeras, templates of three primaries and more,
supplementary and secondary records, reads of which fields contradict each other, QC failures, and
tags that fixmate replaces. Positions and clips come from few values, so that duplicates are many.
"""

import random

from bamfile import sq_text

REFS = [("chr2", 3000), ("chr10", 1200), ("x", 300)]
N_READ = 30
# Tags that fixmate deletes or replaces, at any place among the others.
OLD_TAGS = ("MQ:i:7", "MC:Z:5M", "ms:i:12", "ct:Z:1F5M", "NM:i:1", "MD:Z:30", "SM:i:3")
PRIMARY, SUPPLEMENTARY, SECONDARY = 0, 0x800, 0x100
PAIRED, PROPER, UNMAP, MUNMAP, REVERSE, MREVERSE, READ1, READ2, QCFAIL, DUP = (
    1, 2, 4, 8, 16, 32, 64, 128, 512, 1024)


class Generator:
    """max_clip: the longest clip; odd: how often fields contradict each other, 0 to 1; tags: False
    for records without tags that fixmate replaces."""

    REFS = REFS

    def __init__(self, seed, max_clip=60, odd=0.05, tags=True):
        self.rng = random.Random(seed)
        self.max_clip = max_clip
        self.odd = odd
        self.tags = tags
        self.number = 0

    def chance(self, p):
        return self.rng.random() < p

    def clip(self):
        if self.chance(0.6):
            return ""
        n = self.rng.choice((1, 5, 20, self.max_clip))
        return f"{n}{self.rng.choice('SSSH')}"

    def cigar(self, fits=True):
        """A CIGAR and the number of bases that it covers. fits: the read does not reach behind its
        reference. samtools 1.24 counts deletions among the bases that it clips there."""
        rng = self.rng
        middle = rng.choice(("30M", "30M", "30M", "14M1I15M", "10=1X19=", "10M2D20M", "9M100N21M",
                             "10M3P20M")[:8 if fits else 5])
        if self.chance(self.odd):
            middle = rng.choice(("10M0I20M", "10M20M", "5M5M5M15M", "0M30M", "10=10M10="))
        left, right = self.clip(), self.clip()
        if left.endswith("S") and self.chance(0.1):
            left = "3H" + left
        n = N_READ + sum(int(clip.split("H")[-1][:-1] or 0) for clip in (left, right)
                         if clip.endswith("S"))
        return left + middle + right, n

    def place(self):
        name, length = self.rng.choice(REFS)
        if self.chance(self.odd):
            return name, self.rng.choice((0, length - 5, length, length + 1, length + 40))
        return name, self.rng.choice((50, 50, 51, 100, 100, 101, 180, self.rng.randint(1, length)))

    def tag_fields(self, flag):
        rng = self.rng
        tags = [f"XI:i:{self.number}"]
        if self.tags:
            tags += [tag for tag in OLD_TAGS if self.chance(0.15)]
        if flag & UNMAP and self.chance(0.3):
            tags.append("NM:i:0")
        for tag in ("RG:Z:a", "RG:Z:b"):
            if self.chance(0.3) and not any(t.startswith("RG") for t in tags):
                tags.append(tag)
        if self.chance(0.1):
            tags.append("BX:Z:" + rng.choice(("ACGT", "ACGA", "TTTT")))
        rng.shuffle(tags)
        return tags

    def record(self, name, flag, place=None, seq=True):
        rng = self.rng
        ref, pos = place or self.place()
        cigar, n = self.cigar(ref == "*" or pos + 200 < dict(REFS)[ref])
        self.number += 1
        if flag & UNMAP:
            n = N_READ
            if not self.chance(self.odd):
                cigar = "*"
                if place is None:
                    ref, pos = "*", 0
            else:
                cigar = "30M"
        elif self.chance(self.odd / 3):
            ref, pos = "*", rng.choice((0, 5))
        bases, quals = "*", "*"
        if seq and not self.chance(0.03):
            bases = "".join(rng.choice("ACGT") for _ in range(n))
            quals = "".join(chr(33 + rng.choice((2, 14, 15, 30))) for _ in range(n))
            if self.chance(0.05):
                quals = "*"
        if self.chance(0.5):
            next_ref, next_pos, length = "*", 0, 0
        else:
            next_ref, next_pos, length = "=", rng.randint(0, 500), rng.randint(-300, 300)
            if ref == "*":
                next_ref = "*"
        return "\t".join([name, str(flag), ref, str(pos), str(rng.choice((0, 20, 60))), cigar,
                          next_ref, str(next_pos), str(length), bases, quals,
                          *self.tag_fields(flag)])

    def strand(self):
        return self.rng.choice((0, REVERSE))

    def extras(self, name, flag):
        made = []
        for kind in (SUPPLEMENTARY, SECONDARY):
            for _ in range(self.rng.choice((0, 0, 0, 0, 1, 2))):
                other = flag & ~(REVERSE | UNMAP) | kind | self.strand()
                if self.chance(0.05):
                    other ^= READ1 | READ2
                if self.chance(0.05):
                    other |= UNMAP
                made.append(self.record(name, other, seq=kind == SUPPLEMENTARY))
        return made

    def primary(self, name, flag):
        flag |= self.strand()
        if self.chance(0.05):
            flag |= QCFAIL
        if self.chance(0.05):
            flag |= DUP
        if self.chance(0.12):
            flag |= UNMAP
        if self.chance(0.3):
            flag |= self.rng.choice((PROPER, MUNMAP, MREVERSE, PROPER | MREVERSE))
        return [self.record(name, flag)] + self.extras(name, flag)

    def template(self):
        rng = self.rng
        names = (f"A:1:F:{rng.randint(1, 2)}:{rng.choice((1101, 1102))}:{rng.randint(1, 400)}:"
                 f"{rng.randint(1, 400)}", f"r{self.number}", f"r{self.number}_ACGT")
        name = f"{rng.choice(names)}.{self.number}" if self.chance(0.2) else (
            names[0] + f"{self.number % 10}")
        kind = rng.random()
        if kind < 0.7:
            made = self.primary(name, PAIRED | READ1) + self.primary(name, PAIRED | READ2)
        elif kind < 0.85:
            made = self.primary(name, rng.choice((0, 0, PAIRED | READ1, PAIRED | READ2)))
        elif kind < 0.9:
            made = self.extras(name, PAIRED | READ1) + self.extras(name, 0)
        elif kind < 0.95:
            made = [record for _ in range(rng.randint(3, 5))
                    for record in self.primary(name, rng.choice((PAIRED | READ1, PAIRED | READ2,
                                                                 PAIRED, 0)))]
        else:
            made = self.primary(name, PAIRED | READ1) + self.primary(name, 0)
        if self.chance(0.1):
            rng.shuffle(made)
        return made

    def header(self):
        return ("@HD\tVN:1.6\tSO:unsorted\tGO:query\n" + sq_text(self.REFS) +
                "@RG\tID:a\tLB:one\n@RG\tID:b\tLB:two\n")

    def sam(self, n_templates, header_extra=""):
        lines = [line for _ in range(n_templates) for line in self.template()]
        return self.header() + header_extra + "".join(line + "\n" for line in lines)


class Molecules(Generator):
    """Copies of few molecules, for --markdup: nearly every read has duplicates, and many of them
    have equal scores. Reads of one molecule have the same unclipped 5' ends, whatever their clips.

    names: the form of the read names, a key of NAMES, or None for all forms in one input.
    has_marks: some records come with the marks and tags of an earlier markdup."""

    REFS = [("chr2", 4000), ("chr10", 2000), ("x", 1100)]
    UMIS = ("ACGT", "ACGA", "TTTT", "ACGT+GG")
    # What can be read from a name is one of few tiles, coordinates that are often near each other,
    # and a UMI. The names of one form have equally long parts before the coordinates.
    NAMES = {
        "plain": "r{n}",
        "old": "F1:{tile}:{x}:{y}.{n}",
        "hiseq": "F1:3:{tile}:{x}:{y}.{n}",
        "illumina": "A:1:F1:3:{tile}:{x}:{y}.{n}",
        "umi": "A:1:F1:3:{tile}:{x}:{y}n{n}:{umi}",
        "underscores": "{tile}_{x}_{y}_{n}_{umi}",
    }

    def __init__(self, seed, max_clip=60, names=None, has_marks=True):
        super().__init__(seed, max_clip)
        self.names, self.has_marks = names, has_marks
        self.past_names = []
        self.n_colours = self.rng.choice((1, 1, 4))      # qualities; few: scores are often equal
        self.molecules = [self.molecule() for _ in range(self.rng.choice((1, 3, 12, 40)))]

    def place(self):
        """A reference and an unclipped 5' end on it."""
        name, length = self.rng.choice(self.REFS)
        return name, self.rng.choice((500, 501, 540, length - 500, self.rng.randint(500, 600)))

    def molecule(self):
        """Two 5' ends and strands."""
        rng = self.rng
        ref, start = self.place()
        kind = rng.random()
        if kind < 0.6:
            end = start + rng.choice((0, 5, 28, 29, 30, 60, 90))
            return (ref, start, 0), (ref, min(end, dict(self.REFS)[ref] - 450), REVERSE)
        if kind < 0.75:
            return (ref, start, 0), (ref, start + rng.choice((0, 1, 40)), 0)
        if kind < 0.85:
            return (ref, start, REVERSE), (ref, start + rng.choice((0, 1, 40)), REVERSE)
        return (ref, start, self.strand()), (*self.place(), self.strand())

    def name(self):
        rng = self.rng
        if self.past_names and self.chance(0.02):
            return rng.choice(self.past_names)
        form = self.names or rng.choice(list(self.NAMES))
        self.past_names.append(self.NAMES[form].format(
            n=len(self.past_names), tile=rng.choice((1101, 1101, 1102)),
            x=rng.choice((100, 105, 110, 150, 3000)), y=rng.choice((7, 12, 60, 2000)),
            umi=rng.choice(self.UMIS[:2])))
        return self.past_names[-1]

    def more_tags(self, common):
        rng = self.rng
        tags = [f"XI:i:{self.number}", *common]
        for tag, p in (("SA:Z:x,5,+,4M,0,0;", 0.15), ("XA:Z:x,+5,4M,0;", 0.1)):
            if self.chance(p):
                tags.append(tag)
        if self.has_marks and self.chance(0.05):
            tags.append(rng.choice(("dt:Z:LB", "do:Z:old", "dt:Z:SQ\tdo:Z:before", "dc:i:7")))
        rng.shuffle(tags)
        return tags

    def line(self, name, flag, end, common, whole=True):
        """A line of SAM. end: reference, unclipped 5' end and strand; None: it is not mapped."""
        rng = self.rng
        self.number += 1
        n = N_READ
        if end is None:
            ref, pos, cigar = "*", 0, "*"
        else:
            ref, five, strand = end
            flag |= strand
            middle, reach = rng.choice((("30M", 30), ("30M", 30), ("14M1I15M", 29),
                                        ("10=1X19=", 30), ("10M5D20M", 35), ("9M40N21M", 70)))
            left, right = self.clip(), self.clip()
            cigar = left + middle + right
            pos = five + int(left[:-1] or 0)
            if strand:
                pos = five - int(right[:-1] or 0) - reach + 1
            n += sum(int(clip[:-1]) for clip in (left, right) if clip.endswith("S"))
        bases, quals = "*", "*"
        if whole:
            bases = "".join(rng.choices("ACGT", k=n))
            quals = "".join(rng.choices("?0/.", k=1)[0] * (n if self.n_colours == 1 else 1)
                            for _ in range(1 if self.n_colours == 1 else n))
            if self.n_colours == 1:     # the score does not depend on the clips
                quals = quals[:N_READ].ljust(n, "#")
            if self.chance(0.02):
                quals = "*"
        return "\t".join([name, str(flag), ref, str(pos), str(rng.choice((0, 60))), cigar, "*",
                          "0", "0", bases, quals, *self.more_tags(common)])

    def moved(self, end):
        """The 5' end of a copy: nearly always that of the molecule."""
        ref, five, strand = end
        return ref, five + (self.rng.choice((-1, 1)) if self.chance(0.05) else 0), strand

    def read(self, name, flag, end, common):
        failed = QCFAIL if self.chance(0.06) else 0
        mark = DUP if self.has_marks and self.chance(0.05) else 0
        if self.chance(0.06):
            end, flag = None, flag | UNMAP
        made = [self.line(name, flag | failed | mark, end and self.moved(end), common)]
        for kind in (SUPPLEMENTARY, SECONDARY):
            while self.chance(0.08):
                made.append(self.line(name, flag & ~UNMAP | kind, (*self.place(), self.strand()),
                                      common, kind == SUPPLEMENTARY))
        return made

    def common_tags(self):
        rng, tags = self.rng, []
        group = rng.choice(("a", "a", "b", "c", "c", "unknown", None))
        if group:
            tags.append(f"RG:Z:{group}")
        if self.chance(0.8):
            tags.append("RX:Z:" + rng.choice(self.UMIS))
        elif self.chance(0.1):
            tags.append("RX:i:5")
        return tags

    def template(self):
        rng = self.rng
        name, common = self.name(), self.common_tags()
        ends = list(rng.choice(self.molecules))
        if self.chance(0.3):
            ends.reverse()
        kind = rng.random()
        if kind < 0.15:
            return self.read(name, 0, ends[0], common)
        if kind < 0.2:          # its mate is not there
            return self.read(name, PAIRED | READ1, ends[0], common)
        made = []
        for flag, end in zip((PAIRED | READ1, PAIRED | READ2), ends):
            made += self.read(name, flag, end, common)
        if self.chance(0.1):
            rng.shuffle(made)
        return made

    def header(self):
        return super().header() + "@RG\tID:c\tLB:two\n"


class Wild(Molecules):
    """Reads whose mate fields, MC and ms are anything, for --markdup without --fixmate. Records of
    one name do not stand together."""

    MATE_CIGARS = ("30M", "30M", "30M", "5S30M", "30M5S", "3H5S30M", "10M5D20M", "*", "", "M", "30S",
                   "7H", "5I25M", "5I25M3S", "10M?5S", "SSM", "2147483648M", "0M", "10S*30M", "+M")

    def __init__(self, seed, max_clip=60, names=None):
        super().__init__(seed, max_clip, names)
        self.lacks = self.chance(0.1)       # some reads have no MC, or ms is no number

    def mate_tags(self):
        tags = ["MC:Z:" + self.rng.choice(self.MATE_CIGARS)]
        if self.lacks and self.chance(0.02):
            tags = self.rng.choice(([], ["MC:i:5"]))
        score = self.rng.choice((0, 450, 450, 900, 900, 901, 2**31 - 1))
        tags.append(self.rng.choice((f"ms:i:{score}",) * 40 + ("ms:Z:5", "ms:f:1.5", "ms:i:-5"))
                    if self.lacks else f"ms:i:{score}")
        return tags

    def template(self):
        rng = self.rng
        end = rng.choice(rng.choice(self.molecules))
        flag = rng.choice((0, 16, PAIRED, PAIRED | 16, PAIRED | MREVERSE, PAIRED | MREVERSE | 16))
        flag |= rng.choice((0, READ1, READ1, READ2, READ2, READ1 | READ2))
        for bit in (UNMAP, MUNMAP, SECONDARY, SUPPLEMENTARY, QCFAIL, DUP):
            if self.chance(0.03) and (bit != DUP or self.has_marks):
                flag |= bit
        line = self.line(self.name(), flag & ~REVERSE, (*end[:2], flag & REVERSE),
                         self.common_tags() + self.mate_tags()).split("\t")
        line[6] = rng.choice(("=", "=", "=", "*", "chr2"))
        line[7] = str(rng.choice((500, 500, 501, 540, 1)) if self.chance(0.97) else 0)
        return ["\t".join(line)]


def reverse_complement(bases):
    return bases[::-1].translate(str.maketrans("ACGT", "TGCA"))


class Modified(Generator):
    """Templates of reads with modified bases (tags MM, ML and MN), for --fixmate=-M. Supplementary
    and secondary records are parts of their read, often with the tags of the whole read.

    plain: True for what samtools 1.24 cuts rightly: the primary record of a read that is cut is on
    the forward strand, its lists have one code each, a base and a step, and MN is the last tag.
    broken: how often tags are damaged or contradict their record."""

    def __init__(self, seed, plain=True, broken=0.1):
        super().__init__(seed, odd=0, tags=True)
        self.plain = plain
        self.broken = broken

    def places(self, read, base, part):
        """Which bases of a kind are modified, as indices among the bases of this kind."""
        here = [i for i, b in enumerate(read) if b == base or base == "N"]
        density = self.rng.choice((0.05, 0.3, 0.9))
        places = [i for i in range(len(here)) if self.chance(density)]
        if self.plain and part:
            first, last = (sum(at < end for at in here) for end in part)
            while any(i >= first for i in places) and min(i for i in places if i >= first) >= last:
                places.remove(min(i for i in places if i >= first))
            places = places or [0][:len(here)]
        return places

    def lists(self, read, part):
        """Values of MM and ML for a read, as it was sequenced."""
        rng, text, likely = self.rng, "", []
        bases = "ACGT" if self.plain and part else "ACGTNU"
        for base in rng.sample(bases, rng.choice((1, 1, 2, 3))):
            places = self.places(read, base.replace("U", "T"), part)
            if self.plain and part and not places:
                continue
            codes = rng.choice(("m", "h", "a", "76792", "21839") if self.plain and part else
                               ("m", "mh", "mhfc", "76792"))
            n_codes = 1 if codes[0].isdigit() else len(codes)
            steps = [at - before - 1 for before, at in zip([-1] + places, places)]
            text += base + rng.choice("++-") + codes + (
                "" if self.plain and codes[0].isdigit() else rng.choice(("", "", ".", "?")))
            text += "".join(f",{step}" for step in steps) + ";"
            likely += [rng.randint(0, 255) for _ in range(n_codes * len(steps))]
        return text, likely

    def break_lists(self, text, likely):
        """Damages the values in one of many ways."""
        rng = self.rng
        kind = rng.randint(0, 6)
        if kind == 0:
            return text[:-1], likely
        if kind == 1:
            return text, likely + [7]
        if kind == 2:
            return text, likely[1:]
        if kind == 3:
            return text[:-1] + ",40;", likely + [1]
        if kind == 4:
            return "X" + text[1:], likely
        if kind == 5:
            return text.replace("+", "*", 1), likely
        return text.replace(";", ",2000000000;", 1), likely + [1]

    def mod_tags(self, values, lengths):
        """The tags, MN last if it is there. lengths: values that MN may have; None: no MN."""
        rng = self.rng
        text, likely = values
        draft = self.chance(0.2)
        tags = [f"{'Mm' if draft else 'MM'}:Z:{text}"]
        if self.chance(0.8):
            tags.append(("Ml" if draft else "ML") + ":B:C" + "".join(f",{q}" for q in likely))
        if self.chance(0.2):
            tags.reverse()
        length = rng.choice(lengths)
        return tags if length is None else tags + [f"MN:i:{length}"]

    def line(self, name, flag, cigar, bases, tags):
        rng = self.rng
        self.number += 1
        ref, pos = ("*", 0) if flag & UNMAP else ("chr2", rng.randint(1, 2000))
        quals = "*" if bases == "*" else "F" * len(bases)
        before = [f"XI:i:{self.number}"] + [tag for tag in OLD_TAGS[:4] if self.chance(0.1)]
        after = ["XE:Z:x"] if self.chance(0.3) and not (tags and tags[-1].startswith("MN")) else []
        return "\t".join([name, str(flag), ref, str(pos), "9", cigar, "*", "0", "0", bases or "*",
                          quals or "*", *before, *tags, *after])

    def part_of(self, name, flag, read, part, values, is_pair):
        """A supplementary or secondary record with bases part[0] to part[1] - 1 of a read."""
        flag |= self.strand()
        bases = read[part[0]:part[1]]
        clips = part[0], len(read) - part[1]
        if flag & REVERSE:
            bases, clips = reverse_complement(bases), clips[::-1]
        n = len(bases)
        is_cut = clips != (0, 0)
        left, right = (f"{clip}H" if clip else "" for clip in clips)
        cigar = f"{left}{n}M{right}"
        if self.chance(0.15):
            bases = "*"
        lengths = [None, None, len(read)]
        if self.plain and is_cut and is_pair:
            lengths = [None]
        elif not is_cut:
            lengths += [n, 0, 17]
        elif self.chance(0.3):      # cut already
            values = self.lists(read[part[0]:part[1]], None)
            lengths = [n]
        if self.chance(0.05):
            return self.line(name, flag, cigar, bases, [])
        if self.chance(self.broken) and not (self.plain and is_cut):
            values = self.break_lists(*values)
        return self.line(name, flag, cigar, bases, self.mod_tags(values, lengths))

    def read(self, name, flag, is_pair):
        rng = self.rng
        read = "".join(rng.choices("ACGT", k=rng.choice((20, 60, 300))))
        first = rng.choice((0, 0, rng.randint(0, len(read) // 2)))
        part = first, rng.choice((len(read), rng.randint(first + 1, len(read))))
        is_cut = part != (0, len(read))
        whole = self.lists(read, part if is_cut else None)
        has_parts = self.chance(0.7)
        turned = 0 if self.plain and has_parts and is_cut else self.strand()
        values, cigar, lengths = whole, f"{len(read)}M", [None, None, len(read), 0]
        if self.chance(self.broken):
            values = self.break_lists(*whole)
            lengths.append(11)
        if not has_parts and self.chance(0.3):
            cigar = f"2H{len(read)}M"
        if self.chance(0.1):
            flag |= UNMAP
            cigar = "*"
        bases = reverse_complement(read) if turned else read
        made = []
        if self.chance(0.9):
            tags = self.mod_tags(values, lengths) if self.chance(0.9) else []
            made = [self.line(name, flag | turned, cigar, bases, tags)]
        for _ in range(rng.randint(1, 3) if has_parts else 0):
            kind = rng.choice((SUPPLEMENTARY, SUPPLEMENTARY, SECONDARY))
            made.append(self.part_of(name, flag & ~UNMAP | kind, read, part, whole, is_pair))
        return made

    def template(self):
        name = f"m{self.number}"
        if self.chance(0.5):
            return self.read(name, 0, False)
        return self.read(name, PAIRED | READ1, True) + self.read(name, PAIRED | READ2, True)


class Parts(Modified):
    """Reads of any strand with supplementary and secondary records that are parts of them, and all
    with the tags of the whole read, at any place."""

    def __init__(self, seed):
        super().__init__(seed, plain=False, broken=0)

    def read(self, name, flag, is_pair):
        rng = self.rng
        read = "".join(rng.choices("ACGTN", (8, 8, 8, 8, 1), k=rng.choice((20, 60, 300))))
        text, likely = self.lists(read, None)
        both = [f"MM:Z:{text}", "ML:B:C" + "".join(f",{q}" for q in likely)][:rng.choice((1, 2, 2))]
        made = []
        for kind in (PRIMARY, *rng.choices((SUPPLEMENTARY, SECONDARY), k=rng.randint(1, 3))):
            first = rng.randint(0, len(read) - 1) if kind != PRIMARY else 0
            last = rng.randint(first + 1, len(read)) if kind != PRIMARY else len(read)
            bases, clips, strand = read[first:last], (first, len(read) - last), self.strand()
            if strand:
                bases, clips = reverse_complement(bases), clips[::-1]
            left, right = (f"{clip}H" if clip else "" for clip in clips)
            tags = both + rng.choice(([], [f"MN:i:{len(read)}"]))
            rng.shuffle(tags)
            made.append(self.line(name, flag | kind | strand, f"{left}{len(bases)}M{right}", bases,
                                  tags + ["XE:Z:x"]))
        return made
