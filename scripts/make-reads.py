#!/usr/bin/env python3
"""make-reads.py DIR -- a small genome and paired reads of it for the tests of the workflow modules.

DIR/genome.fasta has three sequences. DIR/reads/SAMPLE-LANE_{1,2}.fastq have the reads of two
samples in two lanes each: one base in a hundred is wrong, and a few reads are not from the genome.
The files are always the same.
"""

import pathlib
import random
import sys

SEQUENCES = {"chr1": 40_000, "chr2": 20_000, "chrM": 5_000}
SAMPLES, LANES, PAIRS = ("tumour", "normal"), ("L1", "L2"), 1500
READ, INSERT = 100, 300
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def bases(rng, n):
    """A random sequence."""
    return "".join(rng.choices("ACGT", k=n))


def with_errors(rng, read):
    """The read with errors, as a sequencer makes them."""
    return "".join(rng.choice("ACGT") if rng.random() < 0.01 else base for base in read)


def main():
    """Writes the files."""
    top = pathlib.Path(sys.argv[1])
    rng = random.Random(2014)
    genome = {name: bases(rng, n) for name, n in SEQUENCES.items()}
    (top / "reads").mkdir(parents=True, exist_ok=True)
    with open(top / "genome.fasta", "w", encoding="ascii") as file:
        for name, sequence in genome.items():
            file.write(f">{name}\n")
            file.writelines(f"{sequence[i:i + 60]}\n" for i in range(0, len(sequence), 60))
    for sample in SAMPLES:
        for lane in LANES:
            ends = [open(top / f"reads/{sample}-{lane}_{end}.fastq", "w", encoding="ascii")
                    for end in (1, 2)]
            for i in range(PAIRS):
                name = rng.choices(list(SEQUENCES), weights=SEQUENCES.values())[0]
                start = rng.randrange(SEQUENCES[name] - INSERT)
                piece = genome[name][start:start + INSERT] if i % 50 else bases(rng, INSERT)
                if rng.random() < 0.5:
                    piece = piece.translate(COMPLEMENT)[::-1]
                pair = piece[:READ], piece[-READ:].translate(COMPLEMENT)[::-1]
                for file, read in zip(ends, pair):
                    file.write(f"@{sample}:{lane}:{i}\n{with_errors(rng, read)}\n+\n{'F' * READ}\n")
            for file in ends:
                file.close()


if __name__ == "__main__":
    main()
