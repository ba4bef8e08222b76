"""Unusual or wrong SAM text, which a parser must accept or refuse as htslib does.

A twist replaces the text of some columns of one line of SAM, or changes how lines end. Columns
count from 0; text for column 11 is put before the tags.
"""

import dataclasses

COLUMN = {"name": 0, "flag": 1, "ref": 2, "pos": 3, "mapq": 4, "cigar": 5, "mate ref": 6,
          "mate pos": 7, "length": 8, "seq": 9, "qual": 10, "tag": 11}
NUMBERS = ("", "0", "-0", "-1", "+5", "007", "0x10", "5x", "x", " 5", "5 ", "1e3", "255", "256",
           "65535", "65536", "2147483646", "2147483647", "2147483648", "-2147483648", "-2147483649",
           "4294967295", "4294967296", "9223372036854775807", "9223372036854775808",
           "99999999999999999999")
# Texts for one column.
TEXTS = {
    "name": ("*", "", "@", "@HD", "a b", "n" * 254, "n" * 255, "n" * 300, "\x80\xff", "a\x7f"),
    "flag": NUMBERS + ("PAIRED", "PAIRED,UNMAP", "unmap", "rp", "*", "010"),
    "ref": ("*", "=", "nope", "", "CHR1", " chr1"),
    "pos": NUMBERS,
    "mapq": NUMBERS,
    "cigar": ("", "5", "M", "0M", "0M5M", "5Z", "5m", "*5M", "5M*", "-5M", "+5M", " 5M", "5M ",
              "05M", "5B", "1M2B1M", "268435455N", "268435456N", "99999999999M", "5M5", "1H1M1H",
              "1S1H1M", "**"),
    "mate ref": ("*", "=", "nope", "", "CHR1", "=="),
    "mate pos": NUMBERS,
    "length": NUMBERS,
    "qual": ("", "*", "F", "FF", "FFF", "  ", "!", "~", "\x7f", "\x80", "\xff", "**", "*F"),
}
# Pairs of sequence and qualities.
PAIRS = (("acgtn", "*"), ("acgt", "FFFF"), ("A.C", "*"), ("ACGU", "*"), ("A*C", "*"), ("**", "*"),
         ("AC C", "*"), ("", "*"), ("", ""), ("=", "F"), ("A1?", "*"), ("\x80A", "*"), ("*", "F"),
         ("*", "FF"), ("A", "*"), ("A", "**"), ("ACGT", "FFF"), ("ACGT", "FFFFF"), ("ACG", "* F"),
         ("AC", "*F"), ("AC", "!\x1f"), ("AC", "~\x7f"), ("AC", "\xff\xff"))
TAGS = tuple("XX:i:" + text for text in NUMBERS) + tuple(
    "XX:f:" + text for text in ("", "nan", "-nan", "NaN", "inf", "-INF", "infinity", "1e400",
                                "1e-400", "0x1p3", "1.5x", ".5", "5.", "+1", "-0", "1e", "1,5",
                                " 1", "0.1", "123456789", "3.14159274", "1e38", "3.5e38")) + tuple(
    "XX:B:" + text for text in ("", "c", "c,", "c,,", "c,1,", "c,300", "c,-129", "C,-1", "C,256",
                                "s,40000", "S,65536", "i,99999999999", "I,-1", "I,4294967296",
                                "f,1e5", "f,nan", "f,x", "f,", "x,1", "c1", "c,1 2", "c,1x", "d,1",
                                "f,1e400", "C,+5", "C,007", "A,a", "Z,a", "cc,1")) + (
    "XX:A:", "XX:A:ab", "XX:A: ", "XX:A:\x80", "XX:Z:", "XX:Z:\x80\xff", "XX:Z: ", "XX:Z:a:b",
    "XX:H:", "XX:H:1", "XX:H:123", "XX:H:xyz", "XX:H:1a", "XX:H:1A ", "X:i:5", "XXX:i:5", "XX:j:5",
    "XX:i", "XX:", "XX", "X", "", ":", "::", "XX::5", "XX:ii:5", "XX:c:5", "XX:C:300", "XX:s:-5",
    "XX:S:5", "XX:I:5", "XX:d:5.5", "XX:I:-1", "XX:c:-200", "  :i:5", "X\x80:i:5", "1X:i:5",
    "XX:i:1\t", "\t", "XX:i:1\tXX:i:2", "CG:B:I,16", "CG:B:I", "RG:i:5", "xx:Z:" + "y" * 70000)
# How lines end: (text after each line, text at the end of the file).
LINE_ENDS = (("\r\n", ""), ("\n", "\n"), ("\n", "\n\n"), ("\n", "@CO\tlate\n"), ("\n", "\r\n"),
             ("\n", "a\n"), ("\n", "\t\n"), ("\n", "a\t4\t*\t0\t0\t*\t*\t0\t0\t*\n"),
             ("\n", "a\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*"), ("\n", "a\t4\t*\t0"),
             ("\n", "#comment\n"), ("\n", "\0\n"), ("\n", "a\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\0\n"))
# Texts that htslib 1.24 refuses or reads differently from 1.16. htslib 1.16 cuts numbers to the
# size of their type, reads U as N, and accepts the beginning of a wrong array.
JUDGED_ANEW = {("seq", "ACGU"), ("tag", "XX:B:C,-1"), ("tag", "XX:B:I,-1"), ("tag", "XX:B:f,x"),
               ("tag", "XX:B:c,1 2"), ("tag", "XX:B:c,1x")}
JUDGED_ANEW |= {(what, text) for what, limit in (("flag", 0xFFFF), ("mapq", 0xFF))
                for text in NUMBERS if text.isdigit() and int(text) > limit}


def judged_anew(record):
    """Whether a record has a text that versions of htslib read differently."""
    return any((what, record.texts.get(column)) in JUDGED_ANEW for what, column in COLUMN.items())


def draw_twist(rng, data):
    """Twists data: replaces one of its records by a changed copy, or changes how its lines end."""
    if not data.records or rng.random() < 0.08:
        data.line_end, data.tail = rng.choice(LINE_ENDS)
        return
    place = rng.randrange(len(data.records))
    what = rng.choice((*TEXTS, "seq", "seq", *["tag"] * 8))
    if what == "seq":
        seq, qual = rng.choice(PAIRS)
        texts = {COLUMN["seq"]: seq, COLUMN["qual"]: qual}
        if rng.random() < 0.7:
            texts[COLUMN["cigar"]] = "*"
    elif what == "tag":
        texts = {COLUMN["tag"]: rng.choice(TAGS)}
    else:
        texts = {COLUMN[what]: rng.choice(TEXTS[what])}
    data.records[place] = dataclasses.replace(data.records[place], texts=texts)
