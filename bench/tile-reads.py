#!/usr/bin/env python3
"""Makes a large BAM of real reads from few: copies of them, side by side on a made-up genome.

Short or long reads, single or in pairs. A piece is a place where reads follow each other without a
gap of more than 1,000 bases. Each copy of each piece gets a window of its own on the references
`tiles1`, `tiles2` ... of at most 250 Mb: positions and mate positions are shifted, and names get
the copy's number. What a read says of itself stays: bases, qualities, CIGAR, tags. The reads of a
template come together, and the templates in random order, as an aligner writes them.

    bench/tile-reads.py locus1.bam locus2.bam -n 6M -o tiled.bam
    bench/tile-reads.py amplicons.bam -n 1M --depth 40 -o tiled.bam

Left out are supplementary and secondary records, and pairs of which one read is missing, or lies on
another reference or more than 100 kb away. The tag SA of a read may name a record that was left
out. Of large inputs only the beginning is used, 200 MB of records of all of them together: give
pieces of a whole genome (`samtools view -b in.bam chr20:10000000-12000000`).

--depth is for places that are deeper than a genome: their reads are dealt out to several windows,
duplicates to the same one.
The same inputs, options and seed give the same file. It is written under another name until it is
complete.
"""

import array
import collections
import concurrent.futures
import gzip
import itertools
import os
import random
import re
import shutil
import struct
import sys
import zlib

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
from bamcheck import EOF_BLOCK, NotWhole, read_exactly, read_header
from measure import (BenchError, bare_parser, parse_positive, parse_records, parse_size, run_main,
                     usable_cores)

PAIRED, SECONDARY, SUPPLEMENTARY, READ1, READ2 = 1, 256, 2048, 64, 128
LARGEST_INPUT_BYTES = 200 << 20
LARGEST_GAP = 1000              # within a piece, and the space between two windows
LARGEST_PIECE = 100_000_000     # a longer one is cut
REFERENCE_LENGTH = 250_000_000  # that of the longest human chromosome; BAI allows twice as much
LARGEST_PAIR = 100_000
LONGEST_NAME = 240              # with its mark a name has at most 254 characters
BLOCK_BYTES = 0xff00
CORE = struct.Struct("<iiBBHHHiiii")

# templates: those of the piece. origin: the position that becomes the first of a window.
Piece = collections.namedtuple("Piece", "templates origin size")

# What is tiled. templates: tuples of reads. window_of: the window of each, or None if it is
# unplaced; origins: the first position of each window; sizes: their bases.
Pattern = collections.namedtuple("Pattern", "templates window_of origins sizes")


class Read:
    """A record without its length, and what changes in a copy."""

    __slots__ = ("tid", "pos", "l_name", "mapq", "n_cigar", "flag", "l_seq", "mate_tid", "mate_pos",
                 "tlen", "name", "rest", "span")

    def __init__(self, body):
        (self.tid, self.pos, self.l_name, self.mapq, _, self.n_cigar, self.flag, self.l_seq,
         self.mate_tid, self.mate_pos, self.tlen) = CORE.unpack_from(body)
        self.name = body[CORE.size:CORE.size + self.l_name]
        self.rest = body[CORE.size + self.l_name:]
        ops = struct.unpack_from("<%dI" % self.n_cigar, self.rest)
        self.span = sum(op >> 4 for op in ops if op & 15 in (0, 2, 3, 7, 8)) or 1

    def end(self):
        return self.pos + self.span

    def file_bytes(self):
        """Bytes in a file, without the mark of the name."""
        return 4 + CORE.size + len(self.name) + len(self.rest)

    def copy(self, mark, tid, shift):
        """The record as it is in a file, with its length. tid: the reference, or -1."""
        name = mark + self.name
        pos = self.pos + shift if tid >= 0 else -1
        has_mate = self.mate_tid >= 0 and tid >= 0
        body = CORE.pack(tid, pos, len(name), self.mapq, bin_of(pos, pos + self.span), self.n_cigar,
                         self.flag, self.l_seq, tid if has_mate else -1,
                         self.mate_pos + shift if has_mate else -1, self.tlen)
        return struct.pack("<I", len(body) + len(name) + len(self.rest)) + body + name + self.rest


def bin_of(start, end):
    """The bin of the BAI index for the half-open range."""
    end -= 1
    for shift, first in ((14, 4681), (17, 585), (20, 73), (23, 9), (26, 1)):
        if start >> shift == end >> shift:
            return first + (start >> shift)
    return 0


# ---- reading ----


def read_bam(path, most_bytes):
    """(header text, records) of a BAM; of its first records, if they are more than most_bytes."""
    try:
        with gzip.open(path, "rb") as f:
            text, records, n_bytes = read_header(f), [], 0
            while n_bytes < most_bytes:
                length = f.read(4)
                if not length:
                    break
                records.append(read_exactly(f, *struct.unpack("<I", length)))
                n_bytes += len(records[-1])
            return text.rstrip(b"\0").decode(errors="replace"), records
    except gzip.BadGzipFile as e:
        raise BenchError("%s is no BAM: `samtools view -b` makes one" % path) from e
    except NotWhole as e:
        raise BenchError("%s %s" % (path, e)) from e
    except (EOFError, zlib.error, struct.error) as e:
        raise BenchError("%s is damaged: %s" % (path, e)) from e


def whole_templates(records):
    """The templates of one input of which no read is missing, and the number of the reads that are
    left out."""
    by_name, n_left_out, found = {}, 0, []
    for body in records:
        read = Read(body)
        if read.flag & (SECONDARY | SUPPLEMENTARY) or read.l_name > LONGEST_NAME:
            n_left_out += 1
        elif read.flag & PAIRED:
            by_name.setdefault(read.name, {})[read.flag & (READ1 | READ2)] = read
        else:
            found.append((read,))
    for reads in by_name.values():
        if set(reads) == {READ1, READ2}:
            found.append((reads[READ1], reads[READ2]))
        else:
            n_left_out += len(reads)
    fit = [template for template in found if fits(template)]
    return fit, n_left_out + sum(map(len, found)) - sum(map(len, fit))


def fits(template):
    """Whether it lies in one place, or in none at all."""
    first = template[0]
    if first.tid < 0:
        return all(read.tid < 0 for read in template)
    return (all(read.tid == first.tid and read.pos >= 0 for read in template)
            and (len(template) == 1 or end_of(template) - start_of(template) <= LARGEST_PAIR))


def start_of(template):
    return min(read.pos for read in template)


def end_of(template):
    return max(read.end() for read in template)


# ---- pieces and windows ----


def cut_pieces(templates):
    """The pieces of the placed templates of one input."""
    pieces, place, last = [], None, 0
    for template in sorted(templates, key=lambda t: (t[0].tid, start_of(t))):
        start = start_of(template)
        if (not pieces or template[0].tid != place or start > last + LARGEST_GAP
                or start > pieces[-1].origin + LARGEST_PIECE):
            pieces.append(Piece([], start, 0))
            place, last = template[0].tid, start
        last = max(last, end_of(template))
        pieces[-1].templates.append(template)
        pieces[-1] = pieces[-1]._replace(size=last - pieces[-1].origin)
    return pieces


def make_pattern(inputs, depth, seed):
    """inputs: the templates of each. depth: the largest of a window, or None."""
    rng = random.Random(seed)
    pattern = Pattern([], [], [], [])
    for templates in inputs:
        unplaced = [template for template in templates if template[0].tid < 0]
        pattern.templates.extend(unplaced)
        pattern.window_of.extend([None] * len(unplaced))
        for piece in cut_pieces([t for t in templates if t[0].tid >= 0]):
            bases = sum(read.span for template in piece.templates for read in template)
            n_windows = max(1, -(-bases // (depth * piece.size))) if depth else 1
            dealt = {}
            for template in piece.templates:
                # Duplicates stay together.
                window = dealt.setdefault((start_of(template), end_of(template)),
                                          rng.randrange(n_windows))
                pattern.templates.append(template)
                pattern.window_of.append(len(pattern.sizes) + window)
            pattern.origins.extend([piece.origin] * n_windows)
            pattern.sizes.extend([piece.size] * n_windows)
    return pattern


def place_windows(sizes, n_copies):
    """(the reference of each window, copy by copy; the first position of each; the lengths of the
    references)."""
    tids, starts, lengths = array.array("i"), array.array("i"), []
    at = REFERENCE_LENGTH
    for size in itertools.chain.from_iterable(itertools.repeat(sizes, n_copies)):
        if at + size + LARGEST_GAP > REFERENCE_LENGTH:
            lengths.append(0)
            at = 0
        tids.append(len(lengths) - 1)
        starts.append(at)
        at += size + LARGEST_GAP
        lengths[-1] = at
    # A BAM without references can be indexed by few programs.
    return tids, starts, lengths or [LARGEST_GAP]


# ---- writing ----


class Bgzf:
    """Writes bytes as BGZF. Threads deflate; zlib lets them work at the same time."""

    def __init__(self, file, level):
        self.file, self.level, self.pending = file, level, bytearray()
        self.pool = concurrent.futures.ThreadPoolExecutor(usable_cores())
        self.blocks = collections.deque()

    def write(self, data):
        self.pending += data
        while len(self.pending) >= BLOCK_BYTES:
            self.put(bytes(self.pending[:BLOCK_BYTES]))
            del self.pending[:BLOCK_BYTES]

    def put(self, data):
        self.blocks.append(self.pool.submit(self.block_of, data))
        while len(self.blocks) > 4 * usable_cores():
            self.file.write(self.blocks.popleft().result())

    def block_of(self, data):
        deflate = zlib.compressobj(self.level, zlib.DEFLATED, -15)
        packed = deflate.compress(data) + deflate.flush()
        return (EOF_BLOCK[:16] + struct.pack("<H", len(packed) + 25) + packed
                + struct.pack("<II", zlib.crc32(data), len(data)))

    def close(self):
        if self.pending:
            self.put(bytes(self.pending))
        for block in self.blocks:
            self.file.write(block.result())
        self.file.write(EOF_BLOCK)
        self.pool.shutdown()


def header_of(texts, names, lengths):
    """The BAM header, with the read groups of the inputs, each ID once."""
    groups = {}
    for line in "\n".join(texts).split("\n"):
        match = re.match(r"@RG\t(?:.*\t)?ID:([^\t]*)", line)
        if match:
            groups.setdefault(match[1], line)
    references = ["tiles%d" % (i + 1) for i in range(len(lengths))]
    lines = ["@HD\tVN:1.6\tSO:unsorted\tGO:query"]
    lines += ["@SQ\tSN:%s\tLN:%d" % pair for pair in zip(references, lengths)]
    lines += groups.values()
    lines += ["@CO\treal reads, tiled by tile-reads.py from " + ", ".join(names)]
    text = "".join(line + "\n" for line in lines).encode()
    return (b"BAM\1" + struct.pack("<I", len(text)) + text + struct.pack("<I", len(lengths))
            + b"".join(struct.pack("<I", len(name) + 1) + name.encode() + b"\0"
                       + struct.pack("<I", length) for name, length in zip(references, lengths)))


def write_copies(out, args, pattern, windows, order):
    """Writes templates in this order until they are enough. Returns (reads, copies used)."""
    tids, starts, _ = windows
    n_templates, n_windows = len(pattern.templates), len(pattern.sizes)
    n_reads = n_bytes = last_copy = 0
    for number in order:
        if n_reads >= args.records or n_bytes >= args.most_bytes:
            break
        copy, at = divmod(number, n_templates)
        template, window = pattern.templates[at], pattern.window_of[at]
        tid, shift = -1, 0
        if window is not None:
            place = copy * n_windows + window
            tid, shift = tids[place], starts[place] - pattern.origins[window]
        mark = b"c%d." % copy
        data = b"".join(read.copy(mark, tid, shift) for read in template)
        out.write(data)
        n_reads += len(template)
        n_bytes += len(data)
        last_copy = max(last_copy, copy)
    return n_reads, last_copy + 1


def tile(args):
    texts, inputs, n_left_out = [], [], 0
    for path in args.inputs:
        text, records = read_bam(path, LARGEST_INPUT_BYTES // len(args.inputs))
        templates, n = whole_templates(records)
        if not templates:
            raise BenchError("%s has no read in its place, nor a whole pair" % path)
        texts.append(text)
        inputs.append(templates)
        n_left_out += n
    pattern = make_pattern(inputs, args.depth, args.seed)
    reads = [read for template in pattern.templates for read in template]
    copy_bytes = sum(read.file_bytes() for read in reads)
    n_copies = min(-(-args.records // len(reads)), -(-args.most_bytes // copy_bytes))
    folder = os.path.dirname(os.path.abspath(args.output))
    need = min(args.most_bytes, args.records * copy_bytes // len(reads))
    free = shutil.disk_usage(folder).free
    if free < need:
        raise BenchError("%s has %.1f GB free, and the file may take %.1f GB: make room, or use "
                         "another -o or a smaller -n" % (folder, free / 1e9, need / 1e9))
    windows = place_windows(pattern.sizes, n_copies)
    order = list(range(n_copies * len(pattern.templates)))
    random.Random(args.seed).shuffle(order)
    part = "%s.part.%d" % (args.output, os.getpid())
    try:
        with open(part, "wb") as f:
            out = Bgzf(f, args.level)
            out.write(header_of(texts, map(os.path.basename, args.inputs), windows[2]))
            n_reads, n_used = write_copies(out, args, pattern, windows, order)
            out.close()
        os.replace(part, args.output)
    finally:
        if os.path.exists(part):
            os.unlink(part)
    print("tile-reads: %d reads of %d bases on average: %d copies of %d reads in %d windows; "
          "%d reads of the inputs were left out"
          % (n_reads, sum(read.l_seq for read in reads) // len(reads), n_used, len(reads),
             len(pattern.sizes), n_left_out), file=sys.stderr)


def parse_arguments():
    parser = bare_parser(__doc__)
    parser.add_argument("inputs", metavar="IN.bam", nargs="+")
    parser.add_argument("-n", "--records", metavar="READS", type=parse_records, default=6 * 10**6,
                        help="how many, with K, M or G; the last pair is whole [6M]")
    parser.add_argument("--most-bytes", metavar="SIZE", type=parse_size, default=1 << 40,
                        help="fewer, if these are so many bytes, with K, M or G [1024G]")
    parser.add_argument("-o", "--output", metavar="FILE", required=True)
    parser.add_argument("--depth", metavar="N", type=parse_positive,
                        help="the largest mean depth of a window [as it is in the input]")
    parser.add_argument("--level", metavar="N", type=int, choices=range(10), default=1,
                        help="compression level, 0 to 9 [1]")
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="of the order [1]")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run_main("tile-reads", lambda: tile(parse_arguments())))
