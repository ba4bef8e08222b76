#!/usr/bin/env python3
"""Makes the inputs that fuzzing begins with: make_seeds.py DIRECTORY

DIRECTORY gets one directory for each target, always with the same files. Targets that read text
also get a dictionary for libFuzzer. The first bytes of an input are settings of the target; see its
source. Inputs that once made a target fail are in test/fuzz/regressions.
"""

import gzip
import pathlib
import random
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import bamfile  # noqa: E402 (found through the line above)
import generate  # noqa: E402

REFS = [("a", 1000), ("b", 1 << 29), ("c", (1 << 31) - 1)]
# The values of enum fuzz_form.
AS_IT_IS, BLOCKS, RECORDS, MADE = range(4)

SAM_WORDS = ["@HD", "@SQ", "@RG", "@PG", "@CO", "\t", "\n", "\r\n", "SN:", "LN:", "ID:", "PP:",
             "LB:", "PG:", "SO:coordinate", "VN:1.6", "*", "=", "4M", "65535", "2147483647",
             "2147483648", "4294967296", "RG:Z:", "MC:Z:", "CG:B:I,", "XX:B:c,", "XF:f:", "XA:A:"]


def noise(rng, sizes):
    """Random bytes, for the targets that make records from them."""
    return [rng.randbytes(rng.choice(sizes)) for _ in range(12)]


def sample_records(rng):
    """Raw records with tags that sort keys depend on."""
    out = []
    for i in range(12):
        aux = b"RGZg%d\0" % (i % 4) + b"MCZ10M\0" + b"MIZ%d/A\0" % i + b"CBZcell%d\0" % (i % 3)
        out.append(bamfile.record(f"r{i:02}", rng.choice((0, 16, 99, 147, 4)), rng.randrange(2),
                                  rng.randrange(900), "20M", "ACGT" * 5, aux))
    out.append(bamfile.record("u", 4, -1, -1, "", "ACGTN" * 9))
    return out


def sample_bams(rng):
    """Uncompressed BAM files."""
    head = bamfile.bam_header(bamfile.sq_text(REFS), REFS)
    return [head, head + b"".join(sample_records(rng)), b"BAM\1" + b"\0" * 8]


def files(rng):
    """[(form, input)] for all forms of fuzz_make_file; the caller adds the byte for the form."""
    made = [(AS_IT_IS, bamfile.bgzf(raw)) for raw in sample_bams(rng)]
    made += [(AS_IT_IS, gzip.compress(sample_bams(rng)[1], mtime=0)),
             (AS_IT_IS, sample_bams(rng)[1]), (AS_IT_IS, generate.odd(5).encode()),
             (AS_IT_IS, b"@SQ\tSN:a\tLN:9\n@CO\tx\nr\t0\ta\t3\t9\t2M\t=\t3\t0\tAC\t!!\tNM:i:1\n")]
    made += [(BLOCKS, bytes((step, 0)) + raw) for raw in sample_bams(rng) for step in (9, 200)]
    made += [(RECORDS, bytes((40, kib)) + b"".join(sample_records(rng))) for kib in (0, 200)]
    made += [(MADE, rng.randbytes(size)) for size in (200, 900, 3000)]
    return made


def block_value(records, ordinals=False):
    """A temporary block without compression; the target sets its checksum."""
    raw = b"".join(records)
    bound = b"\0" * 20
    return (b"\0" * 8 + (b"RSB\4" if ordinals else b"RSB\3") +
            struct.pack("<IIIQQ", 0, len(records), len(bound), len(raw), len(raw)) + bound +
            b"\0\1\2\3\4" * (len(records) if ordinals else 0) + raw)


def header_seeds():
    """Headers to unite, with the target's separator between them."""
    one = ("@HD\tVN:1.6\tSO:unsorted\n@RG\tID:g\tSM:s\tLB:l\tPG:p\n@PG\tID:p\tPN:x\n"
           "@PG\tID:q\tPP:p\n@CO\tcomment\n")
    two = one.replace("SM:s", "SM:t").replace("PN:x", "PN:y")
    cycle = "@PG\tID:p\tPP:q\n@PG\tID:q\tPP:p\n@RG\tID:g\n"
    texts = [one, "\x1e".join((one, two)), "\x1e".join((one, one)), "\x1e".join((cycle, cycle)),
             "\x1e".join((one, cycle, two)), "@RG\tID:g-2\n\x1e@RG\tID:g\n\x1e@RG\tID:g\tSM:x\n",
             "\n@CO\n@CO\tx\n", "@XX\tfoo:bar\n"]
    return [text.encode() for text in texts]


def option_seeds():
    """Command lines in the form of fuzz_options.c: a byte for the option, a line for its
    argument."""
    texts = ["4", "768M", "6", "out.bam", "bam,level=3", "/tmp/x", "CB", "ref.fa", "20", "100",
             "512G", "2G", "zstd", "filter=mapq>0", "level=1", "ref.fa", "1", "77", "all"]
    lines = [bytes((which,)) + text.encode() + b"\n" for which, text in enumerate(texts)]
    flags = [bytes((which,)) + b"\n" for which in range(len(texts), 38)]
    many = [b"\0" + b"".join(lines[i : i + 6]) + b"\x25in.bam\n" for i in range(0, len(lines), 6)]
    many += [b"\0" + flag + b"\x25in.bam\n\x25out\n" for flag in flags]
    many += [b"\0\x04" + form + b"\n\x25in.bam\n" for form in (b"arrow", b"arrows", b"parquet")]
    many += [b"\0\x03a.bam##idx##b.bai\n\x1b\n\x25in.bam\n", b"\3" + lines[1] + lines[10]]
    many += [b"\0\x26" + engine + b"\n\x02" + level + b"\n\x25in.bam\n"
             for engine in (b"auto", b"libdeflate", b"igzip", b"zlib") for level in (b"1", b"6")]
    return many


def all_seeds():
    """{target: [input]}."""
    rng = random.Random(17)
    records = sample_records(rng)
    settings = [bytes(rng.randrange(256) for _ in range(5)) for _ in range(4)]
    text = generate.odd(25).encode()
    lines = [line for line in text.splitlines(True) if line[:1] != b"@" and b"\t*\t0\t" in line]
    refs = generate.fasta(generate.reference(n_refs=2, n_bases=300)).encode()
    return {
        "keys": noise(rng, (100, 400, 1500)),
        "deflate": [bytes((choice,)) + part for choice in (0, 1, 2, 3, 128, 129, 130, 131)
                    for part in (b"".join(records), records[3], text[:900])],
        "merge": noise(rng, (300, 2000, 6000)),
        "index": noise(rng, (300, 2000, 4000)),
        "block": noise(rng, (50, 300)) + [b"\x08" + block_value(records[:n], ordinals)
                                              for n in (1, 5, 12) for ordinals in (False, True)] +
                 [bytes((codec << 4 | how, 12)) + b"".join(records[:12])
                  for codec in range(4) for how in (9, 13)],
        "template": noise(rng, (400, 2000, 6000)) + [
            bytes((0, bits)) + settings[0] * 26 + b"".join(records) for bits in (0, 31)],
        "base_mods": noise(rng, (100, 400, 900)),
        "header": header_seeds(),
        "sam_text": [bytes((size,)) + body for size in range(0, 256, 5)
                     for body in (text, text.replace(b"\n", b"\r\n"), text[:-1], text[:60],
                                  b"".join(lines), b"".join(lines)[:-1])],
        "reader": [bytes((form, size)) + body for form, body in files(rng) for size in (0, 40)],
        "sort": [setting + bytes((form,)) + body for form, body in files(rng)
                 for setting in settings[:2]],
        "columns": noise(rng, (400, 2000, 6000)) + [
            bytes((mode,)) + noise(rng, (2000,))[0] for mode in (0, 4, 8, 16, 20, 32, 40)],
        "options": option_seeds(),
        "fasta": [bytes((9, window, squeeze)) + body for window in (0, 12, 100)
                  for squeeze in (0, 1) for body in (refs, gzip.compress(refs, mtime=0), b">\n")],
        "store": [bytes((3 * how + 2, 6)) + body for how in (0, 1, 3, 5, 7)
                  for body in [b""] + noise(rng, (8, 30))],
    }


def main():
    """Writes all seeds and dictionaries."""
    top = pathlib.Path(sys.argv[1])
    for target, inputs in all_seeds().items():
        folder = top / target
        folder.mkdir(parents=True, exist_ok=True)
        for i, data in enumerate(inputs):
            (folder / f"seed-{i:03}").write_bytes(data)
    escaped = ["".join(f"\\x{byte:02x}" for byte in word.encode()) for word in SAM_WORDS]
    for target in ("header", "sam_text", "sort", "reader"):
        lines = "".join(f'"{word}"\n' for word in escaped)
        (top / f"{target}.dict").write_text(lines, encoding="ascii")


if __name__ == "__main__":
    main()
