"""Input for the tests as SAM text. The same seed gives the same text.

`odd` makes records that are hard to sort: names that differ only in zeros or digits, all flags,
many records at few positions, unplaced records with a position, empty sequences, all tag types.
`reads` makes ordinary sequencing data, for CRAM and for large inputs. `pairs` makes records that
can be sorted in every order. Each record has its number in the XI tag, so that a test can see
whether equal records keep their order.
"""

import random

from bamfile import sq_text

# The names are not sorted, one reference has a single base, and one is almost as long as a BAI
# can index (29 bits).
ODD_REFS = [("chr10", 100000), ("chr2", 500000000), ("x", 1), ("chr1", 70000), ("HLA*01=x", 3000)]

PAIR_REFS = [("b", 20000), ("a", 9000)]

SHORT_NAMES = ["a01", "a1", "a001", "0", "00", "000", "1x", "x1", "x01", "x10", "x9", "x", "01x",
               "1", "10", "9", "a", "a-", "a-1", "A", "a0", "a00", "a0b1", "a00b01", "a0b01", "!",
               "~", "~1",
               "b12345678901234567890123456789", "b012345678901234567890123456789",
               "b12345678901234567890123456788", "b18446744073709551616", "b18446744073709551615",
               "b4294967296", "b4294967295", "1.10", "1.9", "1.09", "1:2:3", "1:02:3", "1:2:03"]

# The smallest and largest values of the integer types of BAM's tags.
INTEGERS = (0, -1, 127, -128, 255, 40000, -40000, 2**31 - 1, 2**32 - 1)


def odd_name(rng):
    """A query name: short and hard to compare, or like a sequencer's, or as long as SAM allows."""
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(SHORT_NAMES)
    if kind < 0.55:
        return "".join(rng.choice("a0019z:_") for _ in range(rng.randint(1, 6)))
    if kind < 0.95:
        return "M:%d:FC%d:%d:%d:%d" % (rng.randint(1, 3), rng.randint(8, 11), rng.randint(1, 4),
                                       rng.choice((7, 70, 700, 1101)), rng.randint(1, 3000))
    stem = "L" * rng.choice((200, 250, 253, 254)) if kind < 0.97 else "7" * rng.randint(100, 254)
    cut = rng.randint(0, 4)
    return stem[: len(stem) - cut] + "".join(rng.choice("0123ab") for _ in range(cut))


def odd_tags(rng):
    tags = []
    for name, make in (
        ("XA", lambda: "A:" + rng.choice("!aZ~")),
        ("Xi", lambda: "i:%d" % rng.choice(INTEGERS)),
        ("Xf", lambda: "f:%s" % rng.choice(("0.5", "-1e+10", "3"))),
        ("XZ", lambda: "Z:" + "z z" * rng.randint(0, 20)),
        ("XH", lambda: "H:" + "1AE3" * rng.randint(0, 3)),
        ("Bc", lambda: "B:c,-128,0,127"),
        ("BS", lambda: "B:S," + ",".join(["65535"] * rng.randint(1, 30))),
        ("BI", lambda: "B:I,0,4294967295"),
        ("Bf", lambda: "B:f,0.25,-2"),
    ):
        if rng.random() < 0.12:
            tags.append(name + ":" + make())
    return tags


def odd_place(rng):
    """(reference name, 1-based position, whether the record must be flagged as unmapped)."""
    kind = rng.random()
    name, length = rng.choice(ODD_REFS)
    if kind < 0.15:
        return "*", 0, True
    if kind < 0.18:
        return "*", rng.choice((1, 5, 1000)), True
    if kind < 0.60:
        return "chr10", rng.choice((500, 500, 500, 501, 65536)), False
    if kind < 0.63:
        return name, length, False
    return name, rng.randint(1, length), False


def odd_record(rng, number):
    ref, pos, unmapped = odd_place(rng)
    flag = rng.randrange(0x1000)
    flag = flag | 4 if unmapped else flag
    n_bases = rng.choice((0, 0, 1, 2, 35, 36, 150))
    seq = "".join(rng.choices("ACGTN", k=n_bases)) or "*"
    qual = "".join(rng.choices("#,:F", k=n_bases)) if rng.random() < 0.8 else ""
    cigar = "*"
    if not flag & 4 or rng.random() < 0.1:
        cigar = "%dM" % n_bases if n_bases else "10M"
        if n_bases >= 35:
            cigar = rng.choice((cigar, "5S%dM" % (n_bases - 5), "3H10M2D%dM" % (n_bases - 10)))
    mate = rng.choice((("*", 0, 0), ("=", max(pos, 1), 0), ("chr1", 77, -500)))
    mate = ("*", 0, 0) if ref == "*" and mate[0] == "=" else mate
    tags = [f"XI:i:{number}"] + odd_tags(rng)
    fields = [odd_name(rng), flag, ref, pos, rng.randrange(61), cigar, *mate, seq, qual or "*"]
    return "\t".join([str(field) for field in fields] + tags)


def odd(n_records, seed=1, header=True):
    """n_records records that are hard to sort, as SAM text."""
    rng = random.Random(seed)
    lines = [odd_record(rng, i) for i in range(n_records)]
    return (sq_text(ODD_REFS) if header else "") + "\n".join(lines) + "\n"


def all_flags(seed=2):
    """All 4,096 flags in shuffled order, with three names and two positions each."""
    rng = random.Random(seed)
    lines = []
    for name in ("q1", "q01", "q2"):
        for flag in range(0x1000):
            place = rng.choice((("chr10", 7), ("chr10", 8)))
            lines.append(f"{name}\t{flag}\t{place[0]}\t{place[1]}\t0\t4M\t*\t0\t0\tACGT\t*")
    rng.shuffle(lines)
    lines = [f"{line}\tXI:i:{i}" for i, line in enumerate(lines)]
    return sq_text(ODD_REFS) + "\n".join(lines) + "\n"


def reference(seed=3, n_refs=3, n_bases=60000):
    """Random references as [(name, sequence)]."""
    rng = random.Random(seed)
    return [(f"ref{i}", "".join(rng.choices("ACGT", k=n_bases))) for i in range(n_refs)]


def fasta(refs):
    """refs as FASTA text, 60 bases a line."""
    out = []
    for name, seq in refs:
        out.append(f">{name}\n")
        out += [seq[i : i + 60] + "\n" for i in range(0, len(seq), 60)]
    return "".join(out)


def reads(n_pairs, refs, seed=4):
    """Pairs of 100 bp reads of refs in random order; one pair in twenty is unmapped."""
    rng = random.Random(seed)
    lines = []
    for i in range(n_pairs):
        name, (ref, seq) = f"run:1:{rng.randint(1, 9)}:{i}", rng.choice(refs)
        begin = rng.randrange(len(seq) - 400)
        end = begin + 300
        tag = f"\tRG:Z:g{i % 2}\tXI:i:{i}"
        qual = "".join(rng.choices("#,:F", weights=(1, 2, 5, 40), k=100))
        if rng.random() < 0.05:
            bases = "".join(rng.choices("ACGT", k=100))
            lines += [f"{name}\t{flag}\t*\t0\t0\t*\t*\t0\t0\t{bases}\t{qual}{tag}"
                      for flag in (77, 141)]
            continue
        left, right = seq[begin : begin + 100], seq[end - 100 : end]
        for flag, pos, mate, size, bases in ((99, begin + 1, end - 99, 300, left),
                                             (147, end - 99, begin + 1, -300, right)):
            lines.append(f"{name}\t{flag}\t{ref}\t{pos}\t60\t100M\t=\t{mate}\t{size}\t"
                         f"{bases}\t{qual}{tag}")
    rng.shuffle(lines)
    text = "@HD\tVN:1.6\tSO:unsorted\n" + sq_text([(name, len(seq)) for name, seq in refs])
    return text + "@RG\tID:g0\tSM:s\tLB:l\n@RG\tID:g1\tSM:s\n" + "\n".join(lines) + "\n"


def ties(n_records, seed=5):
    """Records with the same position and name: only their order in the input differs."""
    rng = random.Random(seed)
    lines = []
    for i in range(n_records):
        bases = "".join(rng.choices("ACGT", k=80))
        lines.append(f"tie\t0\tchr10\t1234\t9\t80M\t*\t0\t0\t{bases}\t*\tXI:i:{i}")
    return sq_text(ODD_REFS) + "\n".join(lines) + "\n"


def incompressible(n_records, seed=6):
    """Unmapped records of 1,000 random bases and qualities, which compress badly."""
    rng = random.Random(seed)
    lines = []
    for i in range(n_records):
        bases = "".join(rng.choices("ACGTN", k=1000))
        qual = bytes(33 + byte % 90 for byte in rng.randbytes(1000)).decode()
        lines.append(f"u{i}\t4\tchr2\t{rng.randint(1, 10**8)}\t0\t*\t*\t0\t0\t{bases}\t{qual}")
    return sq_text(ODD_REFS) + "\n".join(lines) + "\n"


def pair(rng, number):
    """Two lines of SAM: a placed pair with the tags of samtools fixmate, or an unplaced pair."""
    name = rng.choice(("q%d", "q0%d", "Q%d:x")) % rng.randrange(60)
    tags = f"\tXI:i:{number}\tXS:Z:{rng.choice('xyz')}\tMI:Z:{rng.randrange(9)}/A"
    tags += rng.choice(("\tRG:Z:g", "\tRG:Z:h", ""))
    bases = ["".join(rng.choices("ACGT", k=60)) for _ in range(2)]
    if rng.random() < 0.4:
        return [f"{name}\t{flag}\t*\t0\t0\t*\t*\t0\t0\t{seq}\t*{tags}"
                for flag, seq in zip((77, 141), bases)]
    ref, length = rng.choice(PAIR_REFS)
    places = sorted(rng.choices(range(1, length - 100), k=2))
    return [f"{name}\t{flag}\t{ref}\t{pos}\t9\t60M\t=\t{mate}\t0\t{seq}\t*\tMC:Z:60M{tags}"
            for flag, pos, mate, seq in zip((99, 147), places, places[::-1], bases)]


def pairs(n_pairs, seed=1, head=""):
    """Pairs in random order, which samtools can sort in each of its orders."""
    rng = random.Random(seed)
    lines = [line for i in range(n_pairs) for line in pair(rng, i)]
    rng.shuffle(lines)
    groups = "@RG\tID:g\tSM:s\tLB:two\n@RG\tID:h\tSM:s\tLB:one\n"
    return head + sq_text(PAIR_REFS) + groups + "\n".join(lines) + "\n"
