"""The input of a benchmark: simulated reads, real ones that are tiled, or the user's file as it is.

choose_input() makes or finds what --reads or --input name (measure.py). Tiled reads are kept for
the next benchmark, in a directory of the user's own below --dir, since tiling 6 million takes a
minute: the same inputs, their number and the same tile-reads.py have the same name there. Whatever
was taken, `said` goes into the tables and JSON files.
"""

import collections
import contextlib
import glob
import hashlib
import json
import os
import subprocess
import sys
import tempfile

from measure import (INPUT_BYTES_A_RECORD, RECORD_BYTES, ROOT, RUN_BYTES_A_RECORD, BenchError,
                     check_paths, count_records, find_rocksort, find_upstream, need_disk, progress,
                     simulate)

# Bytes of a record of `simulate-reads -m long`.
LONG_RECORD_BYTES = 57_900
HERE = os.path.dirname(os.path.abspath(__file__))

# records: their number, or None if they were not counted.
Input = collections.namedtuple("Input", "path said records")

# Files of Debian packages that are fit for tiling: few have real reads with bases and qualities.
# pattern: the file, as scripts/fetch-real-bams.sh names it. said: what it is. options: of
# tile-reads.py. instead: what is taken where it cannot be had.
Packaged = collections.namedtuple("Packaged", "pattern said options instead")
PACKAGED = {
    # 12,171 reads of a virus, 230 deep. 40 is that of a genome.
    "debian": Packaged("mosdepth-examples--*empty-tids.bam",
                       "Illumina NovaSeq, 2 x 150, of Debian's mosdepth-examples",
                       ["--depth", "40"], "simulated"),
    # 1,000 reads of 13,407 bases on average, the longest 99,139.
    "debian-long": Packaged("python3-nanoget-examples--*alignment.bam",
                            "Oxford Nanopore, of Debian's python3-nanoget-examples", [],
                            "simulated-long"),
}


# What a benchmark works with. rocksort: the words that start it; samtools: its path; input, size:
# the path of the input and its bytes; said: a sentence about it.
Setting = collections.namedtuple("Setting", "rocksort samtools scratch input size records said "
                                            "cold_memory")


def said_of_input(source, records):
    return "%s; %d records, %.1f MB, in the page cache" % (source.said, records,
                                                           os.stat(source.path).st_size / 1e6)


@contextlib.contextmanager
def prepared(name, args, record_bytes=RUN_BYTES_A_RECORD, input_factor=0, options=()):
    """Finds programs and input, and makes a scratch directory for the time of a benchmark: gives a
    Setting. A run writes so many bytes a record, or so many for each byte of the input."""
    samtools, rocksort = find_upstream(args.samtools), find_rocksort(args.rocksort)
    check_paths(args)
    with tempfile.TemporaryDirectory(prefix="rocksort-%s-" % name, dir=args.dir) as scratch:
        source = choose_input(name, args, scratch, options)
        records, size = source.records, os.stat(source.path).st_size
        if records is None:
            records = count_records(samtools, source.path)
        need_disk(args.dir, max(records * record_bytes, size * input_factor))
        yield Setting(rocksort, samtools, scratch, source.path, size, records,
                      said_of_input(source, records), args.cold_memory)


def choose_input(name, args, scratch, options=()):
    """The Input that args.input or args.reads name. name: the benchmark's, for messages. scratch:
    where simulated reads go. options: of simulate-reads. Checks that --dir has room for the input
    and a run."""
    if args.input:
        return Input(os.path.abspath(args.input), os.path.basename(args.input), None)
    what, tiled, said, more = args.reads[0], args.reads, "", []
    if what in PACKAGED:
        packaged = PACKAGED[what]
        tiled, said, more = packaged_bams(name, packaged), packaged.said, packaged.options
        if not tiled:
            what = packaged.instead
            progress("%s: no reads of a Debian package here: %s ones instead"
                     % (name, what.replace("-", " ")))
    if what.startswith("simulated"):
        return simulated(name, args, scratch, what, options)
    paths = [os.path.abspath(path) for path in tiled]
    said = said or ", ".join(map(os.path.basename, paths))
    return Input(tile(name, args, paths, more), "real reads, tiled: " + said, None)


def simulated(name, args, scratch, what, options):
    need_disk(args.dir, args.records * (RUN_BYTES_A_RECORD + INPUT_BYTES_A_RECORD))
    if what == "simulated":
        return Input(simulate(name, args.records, scratch, options), "simulated reads",
                     args.records)
    records = max(1, args.records * RECORD_BYTES // LONG_RECORD_BYTES)
    return Input(simulate(name, records, scratch, ["-m", "long"]), "simulated long reads", records)


# ---- reads of a Debian package ----


def packaged_bams(name, packaged):
    """The files, or an empty list if they are not here and cannot be fetched."""
    folder = os.environ.get("ROCKSORT_REAL_BAMS")
    if folder:
        return glob.glob(os.path.join(glob.escape(folder), packaged.pattern))
    top = os.path.join(ROOT, "build", "real-bams")
    pattern = os.path.join(glob.escape(top), "bams", packaged.pattern)
    script = os.path.join(ROOT, "scripts", "fetch-real-bams.sh")
    if not glob.glob(pattern) and os.path.exists(script):
        progress("%s: fetching real reads of Debian packages" % name)
        subprocess.run(["sh", script, top], stdin=subprocess.DEVNULL, stdout=sys.stderr,
                       check=False)
    return glob.glob(pattern)


# ---- tiles ----


def own_folder(folder):
    """A directory for tiled reads that no other user can write to."""
    path = os.path.join(folder, "rocksort-tiled-%d" % os.getuid())
    os.makedirs(path, mode=0o700, exist_ok=True)
    st = os.lstat(path)
    if st.st_uid != os.getuid() or st.st_mode & 0o170022 != 0o040000:
        raise BenchError("%s is not a directory of yours alone: name another --dir" % path)
    return path


def tile(name, args, paths, more):
    """The path of args.records tiled reads; of fewer if they are longer than simulated ones, so
    that they are as many bytes."""
    script = os.path.join(HERE, "tile-reads.py")
    words = paths + ["-n", str(args.records), "--most-bytes", str(args.records * RECORD_BYTES),
                     *more]
    with open(script, "rb") as f:
        program = hashlib.blake2b(f.read()).hexdigest()
    stamps = [[st.st_size, st.st_mtime_ns] for st in map(os.stat, paths)]
    key = hashlib.blake2b(json.dumps([program, words, stamps]).encode()).hexdigest()[:16]
    path = os.path.join(own_folder(args.dir), "%d-%s.bam" % (args.records, key))
    need = args.records * RUN_BYTES_A_RECORD
    if os.path.exists(path):
        need_disk(args.dir, need)
        progress("%s: the tiled reads of an earlier benchmark: %s" % (name, path))
        return path
    # Level 1 makes no file larger than its records.
    need_disk(args.dir, need + args.records * RECORD_BYTES)
    progress("%s: tiling %s" % (name, ", ".join(map(os.path.basename, paths))))
    # In a process of its own: the memory of a measured program is never less than that of ours.
    done = subprocess.run([sys.executable, "-B", script, *words, "-o", path],
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise BenchError("the reads cannot be tiled")
    progress("%s: %s (%.0f MB) stays for the next benchmark" % (name, path,
                                                               os.stat(path).st_size / 1e6))
    return path
