#!/usr/bin/env python3
"""Makes a large BAM of real reads from few: copies of them, side by side on a made-up genome.

Each copy of each input gets a window of its own of the one reference `tiles`: positions and mate
positions are shifted, and names get the copy's number. The templates come in random order, the two
reads of each together, as an aligner writes them. Supplementary and secondary records, and pairs of
which a read is missing, are left out. The tag SA of a read may name a record that was left out.

    bench/tile-reads.py locus1.bam locus2.bam -n 6M -o tiled.bam

The inputs are pieces of a sorted BAM, each from one place of less than --window bases. The same
inputs, number and seed give the same file.
"""

import argparse
import gzip
import random
import re
import struct
import sys
import zlib

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from measure import BenchError, parse_positive, parse_records, run_main

PAIRED, UNMAPPED, SECONDARY, SUPPLEMENTARY, READ1, READ2 = 1, 4, 256, 2048, 64, 128
REFERENCE = "tiles"
BLOCK_BYTES = 0xff00
EMPTY_BLOCK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
CORE = struct.Struct("<iiBBHHHiiii")


class Read:
    """A record without its length, and what changes in a copy."""

    def __init__(self, body):
        (self.tid, self.pos, self.l_name, self.mapq, _, self.n_cigar, self.flag, self.l_seq,
         self.mate_tid, self.mate_pos, self.tlen) = CORE.unpack_from(body)
        self.name = body[CORE.size:CORE.size + self.l_name]
        self.rest = body[CORE.size + self.l_name:]
        ops = struct.unpack_from("<%dI" % self.n_cigar, self.rest)
        self.span = sum(op >> 4 for op in ops if op & 15 in (0, 2, 3, 7, 8)) or 1

    def copy(self, mark, shift):
        """The record as it is in a file, with its length."""
        name = mark + self.name
        pos = self.pos + shift
        body = CORE.pack(0, pos, len(name), self.mapq, bin_of(pos, pos + self.span), self.n_cigar,
                         self.flag, self.l_seq, 0, self.mate_pos + shift, self.tlen)
        return struct.pack("<I", len(body) + len(name) + len(self.rest)) + body + name + self.rest


def bin_of(start, end):
    """The bin of the BAI index for the half-open range."""
    end -= 1
    for shift, first in ((14, 4681), (17, 585), (20, 73), (23, 9), (26, 1)):
        if start >> shift == end >> shift:
            return first + (start >> shift)
    return 0


def read_bam(path):
    """(header text, records) of a BAM."""
    with gzip.open(path, "rb") as f:
        if f.read(4) != b"BAM\1":
            raise BenchError("%s is no BAM" % path)
        text = f.read(*struct.unpack("<I", f.read(4))).rstrip(b"\0").decode()
        for _ in range(*struct.unpack("<I", f.read(4))):
            f.read(struct.unpack("<I", f.read(4))[0] + 4)
        records = []
        while True:
            length = f.read(4)
            if not length:
                return text, records
            records.append(f.read(*struct.unpack("<I", length)))


def whole_pairs(path, records, window):
    """The pairs of one input, with positions from 0 on."""
    pairs = {}
    for body in records:
        read = Read(body)
        if read.flag & PAIRED and not read.flag & (SECONDARY | SUPPLEMENTARY) and read.tid >= 0:
            pairs.setdefault(read.name, {})[read.flag & (READ1 | READ2)] = read
    whole = [(pair[READ1], pair[READ2]) for pair in pairs.values()
             if READ1 in pair and READ2 in pair and pair[READ1].tid == pair[READ2].tid]
    if not whole:
        raise BenchError("%s has no whole pair" % path)
    tids = [pair[0].tid for pair in whole]
    usual = max(set(tids), key=tids.count)
    whole = [pair for pair in whole if pair[0].tid == usual]
    first = min(read.pos for pair in whole for read in pair)
    last = max(read.pos + read.span for pair in whole for read in pair)
    if last - first > window:
        raise BenchError("%s: its pairs take %d bases: give a larger --window" % (path, last - first))
    for pair in whole:
        for read in pair:
            read.pos -= first
            read.mate_pos -= first
    return whole


class Bgzf:
    """Writes bytes as BGZF."""

    def __init__(self, file, level):
        self.file, self.level, self.pending = file, level, bytearray()

    def write(self, data):
        self.pending += data
        while len(self.pending) >= BLOCK_BYTES:
            self.put(bytes(self.pending[:BLOCK_BYTES]))
            del self.pending[:BLOCK_BYTES]

    def put(self, data):
        deflate = zlib.compressobj(self.level, zlib.DEFLATED, -15)
        packed = deflate.compress(data) + deflate.flush()
        self.file.write(EMPTY_BLOCK[:16] + struct.pack("<H", len(packed) + 25) + packed
                        + struct.pack("<II", zlib.crc32(data), len(data)))

    def close(self):
        if self.pending:
            self.put(bytes(self.pending))
        self.file.write(EMPTY_BLOCK)


def header_of(text, length):
    """The BAM header, with the read groups of the inputs."""
    groups = "".join(line + "\n" for line in text.splitlines() if re.match("@RG\t", line))
    said = ("@HD\tVN:1.6\tSO:unsorted\tGO:query\n@SQ\tSN:%s\tLN:%d\n" % (REFERENCE, length)
            + groups).encode()
    name = REFERENCE.encode() + b"\0"
    return (b"BAM\1" + struct.pack("<I", len(said)) + said
            + struct.pack("<II", 1, len(name)) + name + struct.pack("<I", length))


def tile(args):
    loci, text = [], ""
    for path in args.inputs:
        header, records = read_bam(path)
        text = text or header
        loci.append(whole_pairs(path, records, args.window))
    pairs = [(locus, pair) for locus, found in enumerate(loci) for pair in found]
    wanted = -(-args.records // 2)
    n_copies = -(-wanted // len(pairs))
    length = n_copies * len(loci) * args.window
    if length >= 1 << 29:
        raise BenchError("%d copies do not fit on a reference that BAI can index" % n_copies)
    order = list(range(n_copies * len(pairs)))
    random.Random(args.seed).shuffle(order)
    with open(args.output, "wb") as f:
        out = Bgzf(f, args.level)
        out.write(header_of(text, length))
        for number in order[:wanted]:
            copy, at = divmod(number, len(pairs))
            locus, pair = pairs[at]
            shift = (copy * len(loci) + locus) * args.window
            mark = b"c%d." % copy
            out.write(pair[0].copy(mark, shift) + pair[1].copy(mark, shift))
        out.close()
    print("tile-reads: %d reads, %d copies of %d pairs in %d bases"
          % (2 * len(order[:wanted]), n_copies, len(pairs), length), file=sys.stderr)


def parse_arguments():
    first, _, rest = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=first, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", metavar="IN.bam", nargs="+")
    parser.add_argument("-n", "--records", metavar="READS", type=parse_records, default=6 * 10**6,
                        help="how many, with K, M or G; odd numbers are rounded up [6M]")
    parser.add_argument("-o", "--output", metavar="FILE", required=True)
    parser.add_argument("--window", metavar="BASES", type=parse_positive, default=100000,
                        help="room of each copy of each input [100000]")
    parser.add_argument("--level", metavar="N", type=int, choices=range(10), default=1,
                        help="compression level, 0 to 9 [1]")
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="of the order [1]")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run_main("tile-reads", lambda: tile(parse_arguments())))
