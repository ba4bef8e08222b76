"""The programs that compare.py runs: where they come from, how each is told to do the same job.

All get the same input, threads and memory, and are told to sort by position. Every one has its own
idea of what memory means, and of what a compression level is; `memory` and `level` of a Program say
how that was translated. What they really took and wrote is in the table beside it.

elPrep is not here: it holds everything in memory, 15 times the BAM.
"""

import collections
import re
import shutil

from measure import MIB, find_rocksort, find_upstream, output_of, shared_libraries

# What there is to do. memory_bytes and n_threads are of the whole program; record_bytes is a mean.
Job = collections.namedtuple("Job", "source output temp_dir memory_bytes n_threads level "
                                    "record_bytes")

# name: on the command line and in the table. executables: the first one on PATH is taken.
# install: a command that installs it. version_options and version: what to ask, and what to search
# for in the answer. command(job): its words behind the executable. level(level): the level that it
# is given. memory: how it is given the memory. codec: what deflates if ldd does not tell. rewrites:
# why its records may differ from the input's, or an empty string.
Program = collections.namedtuple("Program", "name executables install version_options version "
                                            "command level memory codec rewrites")

# htslib maps its levels 0 to 9 to these of libdeflate (bgzf.c), and so does bgzf_block.c.
LIBDEFLATE_LEVELS = (0, 1, 2, 3, 5, 6, 7, 8, 10, 12)

# Java heap for a record in SortSam, beside twice its size in the file: 2,100 bytes in all for reads
# of 150 bases, half of Picard's own rule (250,000 records a GB) and twice of what sufficed here.
# More records in memory do not make it faster: 300,000 took 3.9 to 4.2 s at 64 to 512 MiB.
PICARD_RECORD_BYTES = 1400


def same_level(level):
    return level


def rocksort_command(job):
    return ["-@", job.n_threads, "--max-memory", job.memory_bytes, "-l", job.level,
            "-T", job.temp_dir, "-o", job.output, job.source]


def samtools_command(job):
    return ["sort", "-@", job.n_threads, "-m", job.memory_bytes // job.n_threads, "-l", job.level,
            "-T", job.temp_dir, "-o", job.output, job.source]


def fgumi_command(job):
    # Its M is 10^6.
    return ["sort", "--order", "coordinate", "-@", job.n_threads, "--memory-per-thread", "false",
            "-m", "%dMiB" % (job.memory_bytes // MIB), "--compression-level", job.level,
            "-T", job.temp_dir, "-o", job.output, "-i", job.source]


def sambamba_command(job):
    return ["sort", "-t", job.n_threads, "-m", job.memory_bytes, "-l", job.level,
            "--tmpdir", job.temp_dir, "-o", job.output, job.source]


def bamsort_command(job):
    return ["SO=coordinate", "verbose=0", "inputthreads=%d" % job.n_threads,
            "sortthreads=%d" % job.n_threads, "outputthreads=%d" % job.n_threads,
            "blockmb=%d" % (job.memory_bytes // MIB), "level=%d" % job.level,
            "tmpfile=%s/bamsort" % job.temp_dir, "O=" + job.output, "I=" + job.source]


def picard_command(job):
    record_bytes = PICARD_RECORD_BYTES + 2 * job.record_bytes
    return ["-Xmx%dm" % (job.memory_bytes // MIB), "SortSam", "-SO", "coordinate",
            "-VALIDATION_STRINGENCY", "SILENT", "-COMPRESSION_LEVEL", job.level,
            "-MAX_RECORDS_IN_RAM", max(1000, job.memory_bytes // record_bytes),
            "-TMP_DIR", job.temp_dir, "-O", job.output, "-I", job.source]


PROGRAMS = [
    Program("rocksort", (), "make", ["--version"], r"rocksort (\S+)", rocksort_command, same_level,
            "`--max-memory` is all of it", "zlib", ""),
    Program("samtools", (), "apt-get install samtools", ["--version"], r"samtools (\S+)",
            samtools_command, same_level, "`-m` is a thread's part of it", "zlib", ""),
    Program("fgumi", ("fgumi",), "cargo install fgumi --locked", ["--version"], r"fgumi (\S+)",
            fgumi_command, LIBDEFLATE_LEVELS.__getitem__,
            "`-m` is all of it with `--memory-per-thread false`", "a libdeflate of its own", ""),
    Program("sambamba", ("sambamba",), "apt-get install sambamba", ["--version"],
            r"sambamba (\d[\w.]*)", sambamba_command, same_level,
            "`-m` is all of it; it writes a BAI, too, unasked", "a zlib of its own", ""),
    Program("bamsort", ("bamsort",), "apt-get install biobambam2", ["--version"],
            r"version (\d[\w.]*\w)", bamsort_command, same_level, "`blockmb` is all of it",
            "a zlib of its own", ""),
    Program("picard", ("PicardCommandLine", "picard"), "apt-get install picard-tools",
            ["SortSam", "--version"], r"Version:(\S+)", picard_command, same_level,
            "the Java heap (`-Xmx`) is all of it, and `MAX_RECORDS_IN_RAM` what fits there; one "
            "thread sorts", "the JDK's zlib or Intel's GKL",
            "htsjdk may encode records anew"),
]


def find_program(program, args):
    """The words that start it, or None if it is not installed."""
    if program.name == "rocksort":
        return find_rocksort(args.rocksort)
    if program.name == "samtools":
        path = find_upstream(args.samtools, must_exist=False)
    else:
        path = next(filter(None, map(shutil.which, program.executables)), None)
    return [path] if path else None


def version_of(program, words):
    match = re.search(program.version, output_of(words + program.version_options))
    version = match[1] if match else "(no version)"
    if program.name == "picard":
        java = re.search(r'version "(.*?)"', output_of(["java", "-version"]))
        version += ", Java " + (java[1] if java else "unknown")
    return version


def codec_of(program, executable):
    """Which library inflates and deflates, as far as it can be seen from outside."""
    libraries = shared_libraries(executable)
    for name in ("libdeflate", "libz"):
        if name in libraries:
            return libraries[name]
    if program.name == "fgumi":
        # Rust's messages name the source files of the crates that are linked in.
        with open(executable, "rb") as f:
            match = re.search(rb"/libdeflater-(\d[\d.]*\d)/", f.read())
        if match:
            return "libdeflate of the crate libdeflater %s, linked in" % match[1].decode()
    return program.codec


def codec_said(program, log):
    """The same from what a run of it has printed, or None."""
    if program.name != "picard":
        return None
    match = re.search(r"Deflater: (\w+); Inflater: (\w+)", log)
    return "deflater %s, inflater %s (Jdk is the zlib of Java)" % match.groups() if match else None
