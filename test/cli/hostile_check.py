"""Runs rocksort on damaged files, checks the results and compares them with samtools 1.24's.

For every file and every way to sort it:
  - rocksort ends in time, with status 0 or 1, and within its memory limit;
  - status 1 comes with one message, which names the file and has no control characters; there is
    no output and no temporary file, and what went to standard output does not look complete.
    Status 0 comes with a complete output and no message;
  - the result is the same in memory with one thread as spilled with three threads;
  - rocksort refuses what samtools refuses, except for what it says it has MENDED. If both take a
    file, their outputs have the same records; samtools gets padded names as we cut them. If
    rocksort refuses what samtools takes, STRICTER has the reason.
"""

import gzip
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import zlib
from collections import Counter, namedtuple

import bamfile
import harness

Run = namedtuple("Run", "status signal timed_out peak_kib err")
# The output is a file of this name; with to_stdout standard output is redirected to it.
Way = namedtuple("Way", "name options output to_stdout", defaults=(False,))

BUDGET = 24 << 20
SPILL = {"ROCKSORT_TEST_BUDGET": "400000", "ROCKSORT_TEST_SORT_BUFFER": "16K"}
# The budget and 64 MiB. More is allowed for a single record or header that really is that large,
# but in these files large sizes are only claimed.
MEMORY_LIMIT_KIB = (BUDGET >> 10) + (64 << 10)
LIMIT_S = 30

WAYS = [
    Way("coordinate", [], "out.bam"), Way("natural", ["-n"], "out.bam"),
    Way("lexicographical", ["-N"], "out.bam"), Way("tag", ["-t", "CB"], "out.bam"),
    Way("tag, name", ["-n", "-t", "XB"], "out.bam"),
    Way("template", ["--template-coordinate"], "out.bam"), Way("minimiser", ["-M"], "out.bam"),
    Way("index", ["--write-index"], "out.bam"), Way("SAM", ["-O", "sam"], "out.sam"),
    Way("CRAM", ["-O", "cram,no_ref=1"], "out.cram"),
    Way("compressed SAM", ["--write-index"], "out.sam.gz"),
    Way("CRAM, name", ["-n", "-O", "cram,no_ref=1,seqs_per_slice=100"], "out.cram"),
    Way("standard output", [], "stdout.bam", True),
    Way("SAM, standard output", ["-O", "sam"], "stdout.sam", True),
    Way("CRAM, standard output", ["-O", "cram,no_ref=1"], "stdout.cram", True),
]

# The last 38 bytes of a CRAM of version 3: a container without records.
CRAM_END = bytes.fromhex("0f000000ffffffff0fe0454f46000000000100"
                         "05bdd94f0001000606010001000100ee63014b")

# Messages for files that rocksort refuses and samtools takes, with what samtools does: it accepts
# what the specification forbids, or changes it, so that its output differs from its input.
STRICTER = {
    "its position is negative": "samtools sorts positions below -1 as if they were very large",
    "its read name has no end": "samtools overwrites the last character with a NUL",
    "it has no read name": "samtools makes up a name of NULs",
    "its mate's reference is not in the header": "samtools 1.24 looks at the read's reference only",
    "it has a tag whose name is not two letters or digits": "we use such names for our own tags",
    "its line contains a NUL byte": "samtools ends the line there, losing the rest",
    "it has an array with a value that its type cannot hold": "samtools 1.24 changes the type, "
                                                              "htslib 1.16 the value",
    "its line is empty": "samtools ends the file at that line, or skips the line",
    "failed to read header": "htslib 1.16 does not know a file whose first block is empty",
    "cannot be inflated or fails its checksum": "samtools does not compare the size of a block",
    "the BGZF block at byte": "the same",
    "no BGZF block at byte": "we want BGZF's extra field to come first, as all writers write it",
    "the name of a tag has a NUL": "samtools 1.24 leaves this tag and those after it out of a CRAM",
    "it has an array of type A or d": "the same",
    "the name of a tag has a byte above 127": "htslib 1.16 makes a CRAM that cannot be read",
    "its position or that of its mate is above 2147483647": "the same",
    "is beyond 2^31 - 1, and no reference is that long": "BAM cannot hold it, and samtools' SAM does",
    "of its list, ": "the reference's @SQ line could not be read again",
}

# Warnings of repairs with which rocksort takes what samtools 1.24 may refuse.
MENDED = {"are rewritten from its list of references": "the lines of the header were mended"}
NAMES_CUT = "cut at the first NUL"      # samtools takes what follows for a part of the name


class ForkServer:
    """Runs test/tools/fork-server: starts it on first use, and again if it has died."""

    def __init__(self):
        self.process = None

    @staticmethod
    def path():
        """The path of the built fork server, or None if it is not built."""
        for folder in (harness.BUILD, harness.BUILD / "build/plain"):
            if os.access(folder / "fork-server", os.X_OK):
                return str(folder / "fork-server")
        return None

    def start(self):
        """Starts it without our environment variables; each request sets those that it needs."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("ROCKSORT_")}
        env.update(LC_ALL="C", REF_PATH=":", REF_CACHE=":")
        self.process = subprocess.Popen([self.path()], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=env)

    def read(self, size):
        """Reads exactly size bytes of an answer."""
        data = self.process.stdout.read(size)
        if len(data) != size:
            raise RuntimeError("the fork server died")
        return data

    def run(self, argv, env, limit_s, stdout=None):
        """Runs `samtools rocksort argv`, with standard output to a file; returns a Run."""
        if self.process is None:
            self.start()
        words = [str(limit_s), *[f"{key}={value}" for key, value in env.items()],
                 *([f">{stdout}"] if stdout else []), "--", "rocksort",
                 *[str(word) for word in argv]]
        request = [struct.pack("I", len(words))]
        for word in words:
            data = os.fsencode(word)
            request += [struct.pack("I", len(data)), data]
        self.process.stdin.write(b"".join(request))
        self.process.stdin.flush()
        status, timed_out, peak_kib, n_error = struct.unpack("iIII", self.read(16))
        err = self.read(n_error)
        killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        return Run(os.WEXITSTATUS(status) if not killed else None, killed, bool(timed_out),
                   peak_kib, err)

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.process = None


def comparable(record):
    """A raw record with its bin set to 0, because samtools computes the bin anew."""
    return record[:14] + b"\0\0" + record[16:]


def without_lost_positions(records):
    """The records as they would come out of a CRAM that htslib 1.24 wrote: it drops positions without
    a reference, and 1.16 does not. None stays None."""
    if records is None:
        return None
    return b"".join(one[:8] + b"\xff" * 4 + one[12:] if one[4:8] == b"\xff" * 4 else one
                    for one in bamfile.split(records))


def records_of(data):
    """The records of a BAM file, whose header may have any bytes; None if the file is cut off."""
    try:
        raw = gzip.decompress(data)
        at = 8 + struct.unpack_from("<I", raw, 4)[0]
        n_refs, at = struct.unpack_from("<I", raw, at)[0], at + 4
        for _ in range(n_refs):
            at += 8 + struct.unpack_from("<I", raw, at)[0]
    except (EOFError, OSError, zlib.error, struct.error):
        return None
    return raw[at:]


def with_names_cut(data):
    """A BAM file whose names end at their first NUL, from one that may be cut off after a record."""
    raw = gzip.decompress(data)
    n_head = len(raw) - len(records_of(data))
    out = [raw[:n_head]]
    for record in bamfile.split(raw[n_head:]):
        name, rest = record[36 : 36 + record[12]], record[36 + record[12] :]
        name = name[: name.index(0) + 1]
        out += [struct.pack("<I", 32 + len(name) + len(rest)), record[4:12], bytes([len(name)]),
                record[13:36], name, rest]
    return bamfile.bgzf(b"".join(out))


class Judge:
    """Sorts files and checks the results: returns problems as text and counts the outcomes."""

    def __init__(self, with_reference=True):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="rocksort-hostile-", dir=memory))
        self.work, self.scratch = self.top / "work", self.top / "scratch"
        self.wanted = self.top / "wanted"       # samtools' outputs
        for folder in (self.work, self.scratch, self.wanted):
            folder.mkdir()
        self.server = ForkServer()
        self.with_reference = with_reference and harness.pysam is not None
        self.counts = Counter()
        self.memory_counts = not harness.sanitized()

    def close(self):
        self.server.stop()
        shutil.rmtree(self.top, ignore_errors=True)

    def run(self, source, way, spill, n_threads):
        """Sorts source once; returns (Run, path of the output)."""
        out = self.work / way.output
        env = {"TMPDIR": str(self.scratch), **(SPILL if spill else {})}
        argv = [*way.options, "--no-PG", "-@", n_threads, "--max-memory", BUDGET, "-l", 1,
                *([] if way.to_stdout else ["-o", out]), source]
        return self.server.run(argv, env, LIMIT_S * harness.SLOW,
                               out if way.to_stdout else None), out

    def problems_of_run(self, run, way, out, source):
        """The problems of one run that would be problems with any input."""
        err = run.err.decode(errors="replace")
        if run.timed_out:
            return ["does not end"]
        if run.signal:
            return [f"died of {signal.Signals(run.signal).name}: {err[-3000:]}"]
        found = []
        if run.status not in (0, 1):
            found.append(f"status {run.status}: {err[-3000:]}")
        if self.memory_counts and run.peak_kib > MEMORY_LIMIT_KIB:
            found.append(f"peak memory of {run.peak_kib >> 10} MiB")
        errors = harness.own_lines(err)
        closing = [line for line in errors if " records, " in line]
        errors = [line for line in errors
                  if line not in closing and not harness.kept_checkpoints(line)]
        # A checkpoint is mostly kept after a record that cannot be written.
        for checkpoint in harness.kept_checkpoints(err):
            shutil.rmtree(os.path.join(self.work, checkpoint))
        if run.status == 1 and len(errors) != 1:
            found.append(f"{len(errors)} messages: {err[-1000:]!r}")
        if run.status == 1 and errors and not self.names_the_fault(errors[0], source):
            found.append(f"does not name the file: {errors[0]!r}")
        if run.status == 0 and errors:
            found.append(f"a message without a failure: {errors[0]!r}")
        for line in run.err.decode("latin-1").split("\n"):
            if any(ord(char) < 32 or ord(char) == 127 for char in line):
                found.append(f"control characters in {line!r}")
        if run.status == 1 and way.to_stdout and self.looks_complete(out):
            found.append("what a failed sort wrote to standard output looks complete")
        left = sorted(os.listdir(self.scratch)) + sorted(
            name for name in os.listdir(self.work)
            if name != source.name and not (run.status == 0 and name.startswith(out.name))
            and not (way.to_stdout and name == out.name))
        if left and not (run.status == 1 and all(name == out.name for name in left)
                         and "cannot be indexed" in err):
            found.append(f"left behind: {left}")
        return found

    @staticmethod
    def names_the_fault(message, source):
        """Whether the message has the name of the file, with its control characters escaped. A
        message about a problem found while writing names only the read or reference."""
        return (source.name.replace("\x1b", "\\x1b") in message or
                re.search("(read|reference) '.*' (cannot be (written|indexed)|has .* bases)|"
                          "cannot index read '.*'",
                          message))

    @staticmethod
    def looks_complete(out):
        """Whether a file ends as a complete one does; of SAM nobody can tell."""
        data = out.read_bytes()
        if out.name.endswith(".cram"):
            return data.endswith(CRAM_END)
        return not out.name.endswith(".sam") and data.endswith(bamfile.EOF_BLOCK)

    def content(self, way, out):
        """The records of the output without its header; None if the output is not complete. Those
        of CRAM are what samtools reads."""
        if ".sam" not in way.output and not self.looks_complete(out):
            return None
        if way.output.endswith(".cram"):
            plain = out.with_name("plain." + out.name)
            return (without_lost_positions(records_of(plain.read_bytes()))
                    if harness.reference("view", "-b", "--no-PG", "-o", plain, out) else None)
        data = out.read_bytes()
        if way.output.endswith(".sam.gz"):
            try:
                data = gzip.decompress(data)
            except (EOFError, OSError, zlib.error):
                return None
        if ".sam" in way.output:
            return b"".join(line for line in data.splitlines(True) if not line.startswith(b"@"))
        return records_of(data)

    def clean(self, source):
        for folder in (self.work, self.scratch, self.wanted):
            for path in folder.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                elif path != source:
                    path.unlink()

    def run_and_check(self, source, way, spill, n_threads):
        """Sorts once and checks the run; returns (problems, message or None, content or None). After
        a success the message is what was said of repairs."""
        run, out = self.run(source, way, spill, n_threads)
        self.counts["runs"] += 1
        where = f"{way.name}, {'spilled' if spill else 'in memory'}, {n_threads} threads: "
        found = [where + problem for problem in self.problems_of_run(run, way, out, source)]
        content = message = None
        if run.status == 0 and not found:
            content = self.content(way, out)
            message = run.err.decode(errors="replace")
            if content is None:
                found.append(where + "the output is not complete")
        elif run.status == 1:
            errors = harness.own_lines(run.err.decode(errors="replace"))
            message = errors[0] if errors else ""
        self.clean(source)
        return found, message, content

    def reference(self, source, way):
        """The records of samtools' output, or None if samtools fails."""
        out = self.wanted / way.output         # reading a CRAM makes up names from that of the file
        options = [option for option in way.options if option != "--write-index"]
        accepted = harness.reference("sort", "--no-PG", *options, "-o", out, source)
        content = self.content(way, out) if accepted else None
        self.clean(source)
        return content

    def compare(self, case, way, message, content, want):
        """Compares our result with that of samtools; returns problems."""
        if want is None and content is None:
            self.counts["both refuse"] += 1
            return []
        if want is None:
            reason = next((MENDED[text] for text in MENDED if text in message), None)
            self.counts[f"only samtools refuses: {reason}"] += 1
            return [] if reason else [f"{way.name}: samtools refuses this file"]
        if content is None:
            reason = next((text for text in STRICTER if text in message), None)
            self.counts[f"stricter: {reason or message}"] += 1
            return [] if reason else [f"{way.name}: samtools takes this file: {message}"]
        self.counts["both take"] += 1
        if ".sam" not in way.output:
            got, want = ([comparable(raw) for raw in bamfile.split(records)]
                         for records in (content, want))
        else:
            got, want = content.splitlines(), want.splitlines()
        if got == want:
            return []
        if len(got) != len(want):
            return [f"{way.name}: {len(got)} records, samtools has {len(want)}"]
        first = next(i for i, pair in enumerate(zip(got, want)) if pair[0] != pair[1])
        return [f"{way.name}: record {first} is {got[first][:80]!r}, samtools has "
                f"{want[first][:80]!r}"]

    def judge(self, case, ways):
        """Sorts one file in each of ways, in memory and spilled; returns the problems."""
        # The control characters in the name must not be printed either.
        source = self.work / f"in\x1b[31m{len(case.name)}.{case.extension}"
        source.write_bytes(case.data)
        self.counts["files"] += 1
        found = []
        for way in ways:
            whole, message, content = self.run_and_check(source, way, False, 1)
            spilled, other_message, other = self.run_and_check(source, way, True, 3)
            found += whole + spilled
            if whole or spilled:
                continue
            if content != other:
                found.append(f"{way.name}: in memory and spilled differ: {message} {other_message}")
            elif self.with_reference:
                if content is not None and NAMES_CUT in message:
                    source.write_bytes(with_names_cut(case.data))
                found += self.compare(case, way, message or "", content,
                                      self.reference(source, way))
                source.write_bytes(case.data)
        source.unlink()
        return [re.sub(r"\s+", " ", f"{case.name}: {problem}")[:1500] for problem in found]
