"""The programs that compare.py runs: how to install each, and the command for the same job.

All get the same input, threads and memory, and sort by position. Programs differ in what they count
as memory, and in what a compression level is: `memory` and `level` of a Program say how these were
translated. The table has the memory that they took and the bytes that they wrote.

elPrep is left out: it holds everything in memory, 15 times the BAM.
"""

import collections
import re
import shutil

from measure import MIB, find_rocksort, find_upstream, output_of, progress, shared_libraries

# The job. memory_bytes and n_threads are for the whole program; record_bytes is a mean. level: None
# is rocksort's own default.
Job = collections.namedtuple("Job", "source output temp_dir memory_bytes n_threads level "
                                    "record_bytes")

# name: on the command line and in the table. executables: the first one on PATH is taken.
# install: a command that installs it. version_options: options that print the version, and version:
# a pattern that finds it. command(job): the words after the executable. level(level): the level
# that it is given. memory: how it is given the memory. codec: what deflates, if ldd does not tell.
# rewrites: why its records may differ from the input's, or an empty string.
Program = collections.namedtuple("Program", "name executables install version_options version "
                                            "command level memory codec rewrites")

# For its levels 0 to 9 htslib uses these of libdeflate (bgzf.c), and bgzf_block.c does the same.
LIBDEFLATE_LEVELS = (0, 1, 2, 3, 5, 6, 7, 8, 10, 12)

# Bytes of Java heap for a record in SortSam, besides twice its size in the file: 2,100 bytes in all
# for reads of 150 bases. That is half of Picard's own rule (250,000 records a GB) and twice of what
# was enough here. More records in memory do not make it faster: 300,000 records took 3.9 to 4.2 s
# with 64 to 512 MiB.
PICARD_RECORD_BYTES = 1400


def same_level(level):
    return level


def own_level(level):
    """Rocksort's default makes the size of samtools'."""
    return None if level == 6 else level


def level_words(job):
    return [] if job.level is None else ["-l", str(job.level)]


def rocksort_auto_command(job):
    return ["-@", job.n_threads, "--max-memory", job.memory_bytes, *level_words(job),
            "-T", job.temp_dir, "-o", job.output, job.source]


def rocksort_command(job):
    # Igzip, which it takes at level 1 unless told otherwise, makes other files than the others'.
    return ["--deflate", "libdeflate"] + rocksort_auto_command(job)


def samtools_command(job):
    return ["sort", "-@", job.n_threads, "-m", job.memory_bytes // job.n_threads, "-l", job.level,
            "-T", job.temp_dir, "-o", job.output, job.source]


def mako_command(job):
    # In its sizes M is 10^6.
    return ["--order", "coordinate", "-@", job.n_threads, "--memory-per-thread", "false",
            "-m", "%dMiB" % (job.memory_bytes // MIB), "--compression-level", job.level,
            "-T", job.temp_dir, "-o", job.output, "-i", job.source]


def fgumi_command(job):
    return ["sort"] + mako_command(job)


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
    Program("rocksort-auto", (), "make", ["--version"], r"rocksort (\S+)", rocksort_auto_command,
            own_level, "the same; it deflates as users get it: by igzip at level 1, where that is "
            "built in", "zlib", ""),
    Program("samtools", (), "apt-get install samtools", ["--version"], r"samtools (\S+)",
            samtools_command, same_level, "`-m` is a thread's part of it", "zlib", ""),
    Program("fgumi", ("fgumi",), "cargo install fgumi --locked", ["--version"], r"fgumi (\S+)",
            fgumi_command, LIBDEFLATE_LEVELS.__getitem__,
            "`-m` is all of it with `--memory-per-thread false`", "a libdeflate of its own", ""),
    Program("mako", ("mako",), "cargo install fg-mako --locked", ["--version"], r"mako (\S+)",
            mako_command, LIBDEFLATE_LEVELS.__getitem__,
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


# ---- chains: from the aligner's reads to sorted ones with duplicates marked ----

# The job of a chain. source, output, temp_dir, rocksort and samtools are quoted for a shell.
ChainJob = collections.namedtuple("ChainJob", "source output temp_dir memory_bytes n_threads level "
                                              "rocksort samtools")

# command(job): text for bash. executables: what must be on PATH, besides samtools; install: how to
# get it. tolerance: by how much of it the number of duplicates may differ from that of
# rocksort; None: not compared. writes: whether rocksort writes the result.
Chain = collections.namedtuple("Chain", "name title executables install command tolerance writes",
                               defaults=[False])


def rocksort_chain(*options):
    def command(job):
        return "%s -@ %d --max-memory %d %s -T %s %s -o %s %s" % (
            job.rocksort, job.n_threads, job.memory_bytes, " ".join(level_words(job)), job.temp_dir,
            " ".join(options).format(temp=job.temp_dir), job.output, job.source)
    return command


def samtools_chain(job):
    # No @PG line is needed to compare, but a user would not leave it out either.
    return ("{s} fixmate -@ {t} -m -u {i} - | {s} sort -@ {t} -m {m} -u -T {d}/sort - | "
            "{s} markdup -@ {t} -T {d}/markdup -O bam,level={l} - {o}").format(
                s=job.samtools, t=job.n_threads, i=job.source, m=job.memory_bytes // job.n_threads,
                d=job.temp_dir, l=job.level, o=job.output)


def samtools_rocksort_chain(job):
    return ("{s} fixmate -@ {t} -m -u {i} - | {r} -@ {t} --max-memory {m} -u -T {d} - | "
            "{s} markdup -@ {t} -T {d}/markdup -O bam,level={l} - {o}").format(
                s=job.samtools, r=job.rocksort, t=job.n_threads, i=job.source, m=job.memory_bytes,
                d=job.temp_dir, l=job.level, o=job.output)


def bamsormadup_chain(job):
    # It has no option for memory.
    return "bamsormadup threads=%d level=%d tmpfile=%s/bamsormadup M=%s/metrics < %s > %s" % (
        job.n_threads, job.level, job.temp_dir, job.temp_dir, job.source, job.output)


def sambamba_chain(job):
    return ("sambamba sort -t {t} -m {m} -l 0 --tmpdir {d} -o {d}/sorted.bam {i} && "
            "sambamba markdup -t {t} -l {l} --sort-buffer-size {b} --tmpdir {d} {d}/sorted.bam "
            "{o}").format(t=job.n_threads, m=job.memory_bytes, l=job.level, d=job.temp_dir,
                          b=job.memory_bytes // MIB, i=job.source, o=job.output)


def dupblaster_mako_chain(job):
    return ("dupblaster -m --metrics-prefix {d}/metrics -i {i} | mako --order coordinate -@ {t} "
            "--memory-per-thread false -m {m}MiB --compression-level {l} -T {d} -o {o} "
            "-i -").format(
                d=job.temp_dir, i=job.source, t=job.n_threads, m=job.memory_bytes // MIB,
                l=LIBDEFLATE_LEVELS[job.level], o=job.output)


def dupblaster_rocksort_chain(job):
    return ("dupblaster -m --metrics-prefix {d}/metrics -i {i} | {r} -@ {t} --max-memory {m} "
            "-l {l} -T {d} -o {o} -").format(
                d=job.temp_dir, i=job.source, t=job.n_threads, m=job.memory_bytes, l=job.level,
                o=job.output, r=job.rocksort)


ONE_PASS = ("--fixmate", "--markdup")
REPORTS = ("--flagstat {temp}/flagstat", "--idxstats {temp}/idxstats", "--coverage {temp}/coverage")

CHAINS = [
    Chain("one-pass", "rocksort --fixmate --markdup", (), "", rocksort_chain(*ONE_PASS), 0,
          True),
    Chain("sort", "rocksort alone (no mates, no duplicates)", (), "", rocksort_chain(),
          None, True),
    Chain("fixmate", "rocksort --fixmate", (), "", rocksort_chain("--fixmate"), None,
          True),
    Chain("one-pass-S", "rocksort --fixmate --markdup=-S", (), "",
          rocksort_chain("--fixmate", "--markdup=-S"), None, True),
    Chain("one-pass-reports", "one pass with --flagstat --idxstats --coverage", (), "",
          rocksort_chain(*ONE_PASS, *REPORTS), 0, True),
    Chain("samtools", "samtools fixmate \\| sort \\| markdup", (), "", samtools_chain, 0),
    Chain("samtools-rocksort", "samtools fixmate \\| rocksort \\| samtools markdup", (), "",
          samtools_rocksort_chain, 0),
    Chain("bamsormadup", "bamsormadup", ("bamsormadup",), "apt-get install biobambam2",
          bamsormadup_chain, 0.05),
    Chain("sambamba", "sambamba sort, sambamba markdup", ("sambamba",), "apt-get install sambamba",
          sambamba_chain, 0.05),
    Chain("dupblaster-mako", "dupblaster -m \\| mako", ("dupblaster", "mako"),
          "cargo install dupblaster fg-mako --locked", dupblaster_mako_chain, 0.05),
    Chain("dupblaster-rocksort", "dupblaster -m \\| rocksort", ("dupblaster",),
          "cargo install dupblaster --locked", dupblaster_rocksort_chain, 0.05, True),
]


def find_chain(chain):
    """Whether all its programs are installed."""
    return all(map(shutil.which, chain.executables))


def chain_version(chain, rocksort, samtools):
    """Program and version of the chain's own programs."""
    if not chain.executables:
        words = [samtools] if chain.name.startswith("samtools") else rocksort
        return output_of(words + ["--version"]).split("\n", 1)[0]
    patterns = {"bamsormadup": r"version (\d[\w.]*\w)"}
    said = []
    for name in chain.executables:
        match = re.search(patterns.get(name, name + r" (\d[\w.]*)"), output_of([name, "--version"]))
        said.append("%s %s" % (name, match[1] if match else "(no version)"))
    return ", ".join(said)


def find_program(program, args):
    """The words that start the program, or None if it is not installed."""
    if program.name.startswith("rocksort"):
        return find_rocksort(args.rocksort)
    if program.name == "samtools":
        path = find_upstream(args.samtools, must_exist=False)
    else:
        path = next(filter(None, map(shutil.which, program.executables)), None)
    return [path] if path else None


# A program that is installed. words: the beginning of its command.
Found = collections.namedtuple("Found", "program words")


def find_all(who, programs, args):
    """(what is installed of the programs, {name: how to install it} of the others, which a message
    says). who: the benchmark."""
    found, missing = [], {}
    for program in programs:
        words = find_program(program, args)
        if words:
            found.append(Found(program, words))
        else:
            missing[program.name] = program.install
            progress("%s: %s is not installed: %s" % (who, program.name, program.install))
    return found, missing


def version_of(program, words):
    match = re.search(program.version, output_of(words + program.version_options))
    version = match[1] if match else "(no version)"
    if program.name == "picard":
        java = re.search(r'version "(.*?)"', output_of(["java", "-version"]))
        version += ", Java " + (java[1] if java else "unknown")
    return version


def codec_of(program, executable):
    """The library that inflates and deflates, as far as files tell."""
    libraries = shared_libraries(executable)
    for name in ("libdeflate", "libz"):
        if name in libraries:
            return libraries[name]
    if program.name in ("fgumi", "mako"):
        # The messages of Rust programs name source files of the crates.
        with open(executable, "rb") as f:
            match = re.search(rb"/libdeflater-(\d[\d.]*\d)/", f.read())
        if match:
            return "libdeflate of the crate libdeflater %s, linked in" % match[1].decode()
    return program.codec
