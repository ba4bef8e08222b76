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
        """One line of SAM."""
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
        """Supplementary and secondary records of a read."""
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
        """The records of one template."""
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

    def sam(self, n_templates, header_extra=""):
        """SAM text of n_templates."""
        header = ("@HD\tVN:1.6\tSO:unsorted\tGO:query\n" + sq_text(REFS) +
                  "@RG\tID:a\tLB:one\n@RG\tID:b\tLB:two\n" + header_extra)
        lines = [line for _ in range(n_templates) for line in self.template()]
        return header + "".join(line + "\n" for line in lines)
