"""One case of the differential test: draws an input and two command lines at random, runs both
programs and compares their outputs.

The reference is samtools in pysam. Each of its sorts needs its own process, because samtools keeps
the sort order in global variables. These processes are forked from one that has loaded pysam.
"""

import dataclasses
import gzip
import os
import random
import re
import shlex
import shutil
import signal
import struct
import subprocess
import zlib
from collections import namedtuple

import bamfile
import differential_generate as generate
import differential_model as model
import differential_twists as twists
from harness import environment, pg_lines, pysam

LIMIT_S = 60
SHOWN_BYTES = 6000
CODECS = ("none", "snappy", "lz4", "zstd")
BUDGETS = (200_000, 300_000, 400_000, 700_000, 1_000_000, 2_000_000)
# Formats of the input, how often they are drawn, and whether they can hold all that BAM can.
WAYS_IN = {"sam": (6, False), "sam.gz": (1, False), "sam.bgzf": (1, False), "bam": (6, True),
           "bam.blocks": (2, True), "bam.no-eof": (1, True), "bam.gz": (1, True),
           "bam.raw": (1, True), "cram": (2, False)}
WAYS_OUT = {"bam": 8, "sam": 3, "sam.gz": 1, "cram": 2}
# The profiles that an order is tested with, and how often each is drawn.
USUAL = {"any": 6, "template": 2, "unmapped": 1}
# {name of an order: (options that the usage text must name, profiles)}
ORDERS = {
    "coordinate": ("", USUAL),
    "natural": ("-n", USUAL),
    "lexicographical": ("-N", USUAL),
    "tag": ("-t", USUAL),
    "tag-natural": ("-t -n", USUAL),
    "tag-lexicographical": ("-t -N", USUAL),
    "template-coordinate": ("--template-coordinate", {"template": 14, "any": 1}),
    "minhash": ("-M -K -R -H", {"unmapped": 11, "any": 2}),
    "minhash-index": ("-M -K -R -H -I -w", {"unmapped": 1}),
    "mixed": ("-n -N", USUAL),
}
WORDS = {"coordinate": [], "natural": ["-n"], "lexicographical": ["-N"], "tag": ["-t {tag}"],
         "tag-natural": ["-n", "-t {tag}"], "tag-lexicographical": ["-N", "-t {tag}"],
         "template-coordinate": ["--template-coordinate"], "minhash": ["-M"],
         "minhash-index": ["-M", "-I {fasta}"]}
# Several orders on one command line: they exclude each other, or the last or strongest one wins.
MIXTURES = (["-n", "-N"], ["-N", "-n"], ["-t {tag}", "-n", "-N"], ["-n", "--template-coordinate"],
            ["-t {tag}", "--template-coordinate"], ["-M", "-n"], ["-N", "-M"], ["-M", "-t {tag}"],
            ["-M", "--template-coordinate"])

# Options of samtools fixmate -m. (-M differs where samtools 1.24 has faults: test_fixmate.py.)
FIXMATES = ("", "", "-r", "-p", "-c", "-rc", "-pc", "-z off", "-z on", "-z all,cigarx", "-z pos",
            "-c -z cigdup,aux", "-r -z unmap,mqual", "-z cigar")

# Words of the command line that belong together. ours: only our program gets them.
Option = namedtuple("Option", "words ours", defaults=(False,))
Difference = namedtuple("Difference", "kind text")
Run = namedtuple("Run", "status err")
Output = namedtuple("Output", "kind text refs records")


class ReferenceTrouble(Exception):
    """The reference crashed or hung, or could not make the input: nothing can be compared."""


@dataclasses.dataclass
class Case:
    data: generate.Input
    order: str = "coordinate"
    options: list = dataclasses.field(default_factory=list)
    way_in: str = "sam"
    pipe: bool = False
    way_out: str = "bam"
    out_by: str = "option"  # what sets the format: option, extension, or nobody (standard output)
    budget: int = None
    salt: int = 0
    fixmate: str = None  # options of --fixmate; None: not given

    @property
    def n_records(self):
        return len(self.data.records)

    def facts(self, verdict):
        """What the case tests, as pairs of what and which."""
        regime = "spilled" if verdict.n_runs else "refused" if verdict.refused else "in memory"
        return (("order", self.order), ("input", self.way_in), ("output", self.way_out),
                ("profile", self.data.profile), ("regime", regime),
                ("fixmate", self.fixmate is not None and f"'{self.fixmate}'"),
                ("deviation", verdict.deviation),
                *(("special", name) for name in self.data.specials))


@dataclasses.dataclass
class Verdict:
    difference: Difference = None
    deviation: str = None  # name of the known deviation that explains the difference
    refused: bool = False
    n_runs: int = 0


@dataclasses.dataclass
class Deviation:
    """A difference that we want, or that is a bug of htslib or samtools."""

    name: str
    reason: str
    explains: object  # function of (case, difference)


def lacks_mate_reference(record):
    """Whether the mate may have no reference in the text of the record: RNEXT is *, or = and RNAME is
    * or unknown."""
    rnext = record.texts.get(6)
    return (record.mate[0] < 0 or rnext == "*" or
            (2 in record.texts and (rnext == "=" or record.mate[0] == record.tid)))


# All known deviations. Besides, the @PG lines that the programs add are compared only by number,
# place and chain, because each program describes itself there.
# Not drawn, because samtools has no defined order for it: NaN as the value of the sort tag.
# Not drawn if CRAM is read or written, because CRAM does not keep it:
#  - positions without a reference (htslib 1.24 drops them);
#  - references without a position (together with position 2^31 - 1, htslib 1.16 writes a CRAM that
#    no program can read);
#  - empty names (CRAM replaces them by names made from that of the file);
#  - CIGARs of unmapped reads, alignments beyond the end of their reference, a tag twice.
# Not drawn with --fixmate: --template-coordinate (in samtools 1.24 the difference of the references
# -1, of the mate of a read that is alone, and 2^31 - 1, of unmapped reads, overflows: each of both
# comes before the other); deletions, introns and padding of an alignment that goes beyond its
# reference (samtools 1.24 counts them among the bases that it clips there).
DEVIATIONS = [
    Deviation("bin", "htslib computes the bin anew when it reads a BAM record that has a CIGAR; "
              "rocksort writes the bin of the input, even if it is wrong",
              lambda case, difference: difference.kind == "bin" and any(
                  record.bin is not None and record.cigar for record in case.data.records)),
    Deviation("long CIGAR", "a CIGAR of more than 65,535 operations of a read without a position "
              "stays in its CG tag; from SAM to SAM samtools writes it into its column, unless the "
              "record was in a temporary file",
              lambda case, difference: difference.kind == "record" and any(
                  record.tid < 0 and len(record.cigar) > model.MAX_FIELD_OPS
                  for record in case.data.records)),
    Deviation("bin of -M", "in a temporary file samtools -M stores the minimiser as the position "
              "of a record; when the record is read again, its bin is computed from the minimiser",
              lambda case, difference: difference.kind == "bin" and any(
                  "-M" in option.words for option in case.options) and any(
                  record.tid < 0 and record.cigar for record in case.data.records)),
    Deviation("overflow", "in samtools --template-coordinate the difference of the references -1, of "
              "a mate that counts as mapped, and 2^31 - 1, of an unmapped read, overflows: each of "
              "both comes before the other",
              lambda case, difference: difference.kind == "record" and any(
                  "--template-coordinate" in option.words for option in case.options) and any(
                  record.flag & 9 == 1 and lacks_mate_reference(record)
                  for record in case.data.records)),
    Deviation("position", "positions beyond 2^31 - 1 are refused, also from SAM to SAM, if no "
              "reference is that long",
              lambda case, difference: difference.kind == "status" and
              "is beyond 2^31 - 1" in difference.text),
    Deviation("NUL", "a NUL byte ends a line of SAM for samtools; rocksort refuses it",
              lambda case, difference: difference.kind == "status" and
              "contains a NUL byte" in difference.text),
    Deviation("htslib", "rocksort may use an older htslib, which accepts what 1.24 refuses",
              lambda case, difference: difference.kind in ("status", "record") and any(
                  twists.judged_anew(record) for record in case.data.records)),
]


# Drawing


def weighted(rng, weights):
    """Draws a key of weights; the values say how often each key is drawn."""
    return rng.choices(list(weights), weights=list(weights.values()))[0]


def usage_options(program):
    """The options that the program's usage text names."""
    done = subprocess.run([program, "--help=all"], stdin=subprocess.DEVNULL, capture_output=True,
                          check=True, timeout=LIMIT_S)
    return set(re.findall(r"(?<![\w-])--?[A-Za-z@][\w-]*", done.stdout.decode()))


def lacking_orders(program):
    """The names of the orders whose options the program's usage text does not name."""
    known = usage_options(program)
    return [name for name, (words, _) in ORDERS.items() if not set(words.split()) <= known]


def draw_order(rng, order):
    if order == "mixed":
        return list(rng.choice(MIXTURES))
    words = list(WORDS[order])
    if order.startswith("minhash"):
        if rng.random() < 0.7:
            words.append("-K %d" % rng.choice((1, 2, 5, 10, 15, 20, 25, 31)))
        words += [option for option in ("-R", "-H") if rng.random() < 0.3]
        if "-I {fasta}" in words and rng.random() < 0.6:
            words.append("-w %d" % rng.choice((1, 2, 10, 50, 100, 1000)))
    return words


def draw_options(rng, order):
    """The options of a command line as Options, in random order."""
    orders = [Option(tuple(word.split())) for word in draw_order(rng, order)]
    others = []
    if rng.random() < 0.7:
        n_threads = str(rng.choice((0, 1, 2, 2, 3, 4)))
        others.append(Option(rng.choice((("-@", n_threads), ("-@" + n_threads,),
                                         ("--threads", n_threads)))))
    if rng.random() < 0.3:
        others.append(Option(("-m", rng.choice(("1M", "2000000", "1500K", "16M", "1G", "1m")))))
    if rng.random() < 0.3:
        level = str(rng.randrange(10))
        others.append(Option(rng.choice((("-l", level), ("-l" + level,)))))
    elif rng.random() < 0.15:
        others.append(Option(("-u",)))
    if rng.random() < 0.6:
        others.append(Option(("--no-PG",)))
    if rng.random() < 0.3:
        others.append(Option(("--temp-codec", rng.choice(CODECS)), True))
    if rng.random() < 0.1:
        others.append(Option(("-s", rng.choice(("1", "100K", "4M", "1G"))), True))
    rng.shuffle(others)
    cut = rng.randint(0, len(others))
    return others[:cut] + orders + others[cut:]


def draw_shape(rng, order, way_in, spill, to_cram):
    n_records = rng.choice((rng.randint(0, 2), rng.randint(1, 12), rng.randint(5, 100),
                            rng.randint(20, 200), rng.randint(100, 600)))
    if rng.random() < 0.05:
        n_records = rng.randint(600, 3000)
    shape = generate.Shape(weighted(rng, ORDERS[order][1]), n_records)
    shape.for_cram = to_cram or way_in == "cram"
    shape.for_bam = WAYS_IN[way_in][1] and not shape.for_cram and rng.random() < 0.8
    shape.broken = order == "template-coordinate" and rng.random() < 0.08
    shape.twisted = way_in.startswith("sam") and not shape.for_cram and rng.random() < 0.25
    shape.many_ops = not shape.for_cram and n_records < 200 and rng.random() < 0.01
    shape.many_refs = n_records < 200 and rng.random() < 0.003
    if spill and n_records:
        shape.pad_bytes = min(rng.choice((300_000, 600_000, 1_500_000)) // n_records, 60_000)
    return shape


def group_by_name(rng, records):
    """The records of each name one after another. Names are in the order of their first records. A
    few groups come apart."""
    groups = {}
    for record in records:
        groups.setdefault(record.name, []).append(record)
    groups = list(groups.values())
    if rng.random() < 0.2 and len(groups) > 1:
        group = rng.choice(groups)
        groups.append([group.pop()])
    return [record for group in groups for record in group]


def share_names(rng, records):
    """Gives neighbours one name, so that most records have mates."""
    n_left, name = 0, ""
    for i, record in enumerate(records):
        if n_left == 0:
            n_left, name = rng.choice((1, 2, 2, 2, 3, 4, 8)), record.name
        records[i] = dataclasses.replace(record, name=name)
        n_left -= 1


def end_whole(refs, record):
    """The record, without deletions, introns and padding if it goes beyond its reference."""
    reach = model.cigar_length(record.cigar, model.ON_REFERENCE)
    if record.tid < 0 or record.pos + reach <= refs[record.tid][1]:
        return record
    cigar = [(length, op) for length, op in record.cigar if op not in "DNP"]
    return dataclasses.replace(record, cigar=cigar)


def draw_case(seed, number, orders, fixmate_share=0):
    """Draws case `number` of a seed, with one of orders. fixmate_share: how often it has --fixmate,
    from 0 to 1."""
    rng = random.Random(f"{seed}:{number}")
    order = weighted(rng, {name: 1 if name == "mixed" else 6 for name in orders})
    way_in = weighted(rng, {name: weight for name, (weight, _) in WAYS_IN.items()})
    way_out, spill = weighted(rng, WAYS_OUT), rng.random() < 0.35
    data = generate.make_input(rng, draw_shape(rng, order, way_in, spill, way_out == "cram"))
    case = Case(data, order, draw_options(rng, order), way_in, rng.random() < 0.3, way_out)
    case.out_by = rng.choice(("option", "extension", "nobody"))
    if case.out_by == "nobody" and way_out == "sam.gz":
        case.out_by = "extension"
    case.budget = rng.choice(BUDGETS) if spill else None
    case.salt = rng.randrange(2**32)
    by_template = any("--template-coordinate" in option.words for option in case.options)
    if rng.random() < fixmate_share and not by_template:
        case.fixmate = rng.choice(FIXMATES)
        if rng.random() < 0.7:
            share_names(rng, data.records)
        data.records = [end_whole(data.refs, record)
                        for record in group_by_name(rng, data.records)]
    return case


# Command lines


def format_words(case):
    """The words that set the output format for both programs. (The reference always has -o.)"""
    name = case.way_out.split(".")[0]
    if case.out_by == "extension" or case.way_out == "sam.gz":
        return ("--output-fmt-option", "no_ref=1") if name == "cram" else ()
    if case.out_by == "nobody" and name == "bam":
        return ()
    return ("-O", "cram,no_ref=1" if name == "cram" else name)


def option_words(case, folder, ours):
    """The words of all options for one of the two programs."""
    places = {"{tag}": case.data.sort_tag, "{fasta}": f"{folder}/ref.fa"}
    words = [places.get(word, word) for option in case.options if ours or not option.ours
             for word in option.words]
    return words + list(format_words(case))


def our_command(case, program, folder):
    """The command line of the program under test, which runs in folder/ours."""
    out = [] if case.out_by == "nobody" else ["-o", f"got.{case.way_out}"]
    source = f"../in.{case.way_in}"
    if case.pipe:
        source = "-" if case.salt % 2 else None
    words = [program, *option_words(case, folder, True), *out]
    if case.fixmate is not None:
        words.append("--fixmate" + (f"={case.fixmate}" if case.fixmate else ""))
    return words + ([source] if source else [])


def their_commands(case, folder):
    """The command lines of the reference, without its name."""
    source, first = f"{folder}/in.{case.way_in}", []
    if case.fixmate is not None:
        fixed = f"{folder}/fixed.bam"
        first = [["fixmate", "-m", "-u", "--no-PG", *case.fixmate.split(), source, fixed]]
        source = fixed
    return first + [["sort", *option_words(case, folder, False), "-o",
                     f"{folder}/want.{case.way_out}", source]]


def show_commands(case, program, folder):
    """Both command lines, in a form that can be typed."""
    words = our_command(case, program, folder)
    ours = shlex.join(words)
    if case.budget:
        ours = f"ROCKSORT_TEST_FILE=32K ROCKSORT_TEST_BUDGET={case.budget} {ours}"
    if case.pipe:
        ours = f"cat ../in.{case.way_in} | {ours}"
    if case.out_by == "nobody":
        ours += f" > got.{case.way_out}"
    theirs = "; ".join("samtools " + " ".join(words) for words in their_commands(case, folder))
    return f"ours:      {ours}\nreference: {theirs}"


# Input files


def show_input(case):
    """The input of a case as text, with the BAM types of tags if SAM cannot express them."""
    data = case.data
    text = model.sam_bytes(data).decode("latin-1")
    if len(text) > SHOWN_BYTES:
        text = text[:SHOWN_BYTES] + f"... ({len(text)} bytes)\n"
    if not case.way_in.startswith("sam"):
        shown = data.records[:20]
        text += "as BAM:\n" + "".join(
            model.shorten(model.describe(model.bam_record(record))) + "\n" for record in shown)
    return text


def cut_blocks(data, salt, first):
    """data in BGZF blocks of odd sizes, some of them empty. The first block is not tiny, because
    htslib 1.16 recognises the format from that block alone."""
    rng, blocks = random.Random(salt), [bamfile.bgzf_block(data[:first])]
    at = first
    while at < len(data):
        step = rng.choice((1, 100, 5000, 30000, bamfile.BLOCK_PAYLOAD_BYTES))
        if step < 1000 and rng.random() < 0.9:
            step = 20000
        blocks.append(bamfile.bgzf_block(data[at : at + step]))
        at += step
        if rng.random() < 0.1:
            blocks.append(bamfile.EOF_BLOCK)
    return b"".join(blocks) + bamfile.EOF_BLOCK


def input_bytes(case):
    """The bytes of the input file; for a CRAM, those of the BAM that it is made from."""
    data = case.data
    if case.way_in.startswith("sam"):
        raw = model.sam_bytes(data)
    else:
        raw = model.bam_bytes(data)
    if case.way_in in ("sam", "bam.raw"):
        return raw
    if case.way_in.endswith(".gz"):
        return gzip.compress(raw, 1, mtime=0)
    if case.way_in == "bam.blocks":
        return cut_blocks(raw, case.salt, 4000)
    if case.way_in == "bam.no-eof":
        return b"".join(bamfile.bgzf_blocks(raw))
    return bamfile.bgzf(raw)


def write_input(case, folder):
    """Writes all files that a case reads."""
    path = f"{folder}/in.{case.way_in}"
    with open(path + ".source" if case.way_in == "cram" else path, "wb") as file:
        file.write(input_bytes(case))
    if case.data.genome:
        with open(f"{folder}/ref.fa", "w", encoding="ascii") as file:
            for name, bases in case.data.genome:
                file.write(f">{name}\n{bases}\n")
    if case.way_in == "cram":
        make = ["view", "--no-PG", "-C", "--output-fmt-option", "no_ref=1", "-o", path,
                path + ".source"]
        if reference([make], f"{folder}/view.err") != 0:
            raise ReferenceTrouble("the reference cannot make this CRAM")


# Running


def reference(commands, err_path):
    """Runs commands of pysam's samtools one after the other in one forked child. Returns 0, or 1 if
    a command failed. Their messages are written to err_path. A command may also be a function."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.alarm(LIMIT_S)
            os.environ.update(REF_PATH=":", REF_CACHE=":")
            err = os.open(err_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            os.dup2(err, 2)
            for command in commands:
                if callable(command):
                    command()
                else:
                    getattr(pysam, command[0])(*command[1:], catch_stdout=False)
            status = 0
        finally:
            os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, 1):
        raise ReferenceTrouble(f"the reference died of signal {-code}")
    return code


def run_program(argv, folder, source, out_path, env):
    """Runs the program under test in folder/ours; source: the file that comes through a pipe, or
    None."""
    for name in ("ours", "scratch"):
        os.mkdir(f"{folder}/{name}")
    data = b""
    if source:
        with open(source, "rb") as file:
            data = file.read()
    with open(out_path, "wb") as out:
        try:
            done = subprocess.run(argv, input=data, stdout=out, stderr=subprocess.PIPE, check=False,
                                  cwd=f"{folder}/ours", timeout=LIMIT_S, env=env)
        except subprocess.TimeoutExpired:
            return Run(None, "")
    err = done.stderr.decode(errors="replace")
    with open(f"{folder}/got.err", "w", encoding="utf-8") as file:
        file.write(err)
    return Run(done.returncode, err)


def run_ours(case, program, folder):
    out_path = f"{folder}/ours/got.{case.way_out}" if case.out_by == "nobody" else os.devnull
    return run_program(our_command(case, program, folder), folder,
                       f"{folder}/in.{case.way_in}" if case.pipe else None, out_path,
                       environment(f"{folder}/scratch", case.budget))


def read_bam(data):
    bam = bamfile.parse_file(data)
    return Output("BAM", bam.text, bam.refs, bamfile.split(bam.records))


def read_sam(data):
    kind = "SAM"
    if data[:2] == b"\x1f\x8b":
        kind, data = "compressed SAM", gzip.decompress(data)
    lines = data.decode("latin-1").split("\n")
    if lines.pop():
        raise ValueError("the last line has no end")
    n_header = next((i for i, line in enumerate(lines) if not line.startswith("@")), len(lines))
    return Output(kind, "\n".join(lines[:n_header]), [], lines[n_header:])


def read_output(path, folder):
    """Makes an Output from a file of any format, or a Difference if it cannot be read."""
    try:
        with open(path, "rb") as file:
            data = file.read()
        if data[:4] == b"CRAM":
            text = path + ".sam"
            if reference([["view", "--no-PG", "-h", "-o", text, path]], f"{folder}/view.err") != 0:
                return Difference("unreadable", "the reference cannot read the CRAM")
            with open(text, "rb") as file:
                return read_sam(file.read())._replace(kind="CRAM")
        if data[:4] == bamfile.EOF_BLOCK[:4] and gzip.decompress(data)[:4] == b"BAM\1":
            return read_bam(data)
        return read_sam(data)
    except (ValueError, EOFError, OSError, zlib.error, struct.error) as error:
        return Difference("unreadable", f"the output cannot be read: {error}")


# Comparing


def wanted_files(case, status):
    """The files that a run leaves."""
    return [f"got.{case.way_out}"] if status == 0 or case.out_by == "nobody" else []


def leftovers(wanted, folder):
    """A Difference if other files are left in the directories."""
    left = sorted(os.listdir(f"{folder}/ours")), os.listdir(f"{folder}/scratch")
    if left != (sorted(wanted), []):
        return Difference("leftovers", f"{left[0]} in the working directory, not {wanted}; "
                                       f"{left[1]} in TMPDIR")
    return None


def last_words(err):
    """The end of a program's messages, without htslib's warnings about single records. An error of
    ours may be in the middle of such a line (see n_messages)."""
    lines = [line for line in err.splitlines()
             if not line.startswith("[W::sam_parse1]") or "rocksort" in line]
    return "\n".join(lines)[-1500:]


def n_messages(err):
    """How many errors rocksort reported. An error may begin in the middle of a line, because
    threads of htslib print their warnings in pieces."""
    return len(re.findall(r"samtools rocksort: (?!warning:|sorted \d+ records|temporary files kept)",
                          err))


def compare_status(ours, their_status, their_err):
    """A Difference if one program succeeded and the other failed, or if ours crashed, hung, or did
    not print exactly one message."""
    if ours.status is None:
        return Difference("hang", f"still running after {LIMIT_S} s")
    if ours.status not in (0, 1):
        return Difference("death", f"exit status {ours.status}\n{last_words(ours.err)}")
    if ours.status != their_status:
        return Difference("status", f"ours {ours.status}, reference {their_status}\n"
                                    f"ours: {last_words(ours.err)}\n"
                                    f"reference: {last_words(their_err)}")
    if n_messages(ours.err) != ours.status:
        return Difference("message", f"exit status {ours.status}: {last_words(ours.err)}")
    return None


def first_difference(what, got, want):
    """The first place where two lists of lines or records differ."""
    for i, (mine, theirs) in enumerate(zip(got, want)):
        if mine != theirs:
            mine, theirs = model.describe_pair(mine, theirs)
            return f"{what} {i}\nours:      {mine}\nreference: {theirs}"
    return f"ours has {len(got)} {what}s, reference {len(want)}"


def compare_headers(case, got, want):
    """A Difference between two header texts, or None. The content of added @PG lines may differ."""
    def masked(text):
        return ["@PG" if line.startswith("@PG") else line for line in text.splitlines()]

    if masked(got) != masked(want):
        return Difference("header", first_difference("header line", masked(got), masked(want)))
    n_old = sum(line.startswith("@PG") for line in case.data.header)
    (mine, theirs) = ([line for line in text.splitlines() if line.startswith("@PG")]
                      for text in (got, want))
    if mine[:n_old] != theirs[:n_old]:
        return Difference("pg", first_difference("@PG line", mine[:n_old], theirs[:n_old]))
    mine, theirs = pg_lines(got), pg_lines(want)
    chains = [[line.get("PP") for line in lines[n_old:]] for lines in (mine, theirs)]
    if chains[0] != chains[1]:
        return Difference("pg", f"PP of the added lines: ours {chains[0]}, reference {chains[1]}")
    if len({line["ID"] for line in mine}) != len(mine):
        return Difference("pg", f"the same ID twice: {[line['ID'] for line in mine]}")
    return None


def without_bin(raw):
    """A raw BAM record with its bin set to 0."""
    return raw[:14] + raw[16:]


def compare_outputs(case, got, want):
    if got.kind != want.kind:
        return Difference("format", f"ours is {got.kind}, reference {want.kind}")
    difference = compare_headers(case, got.text, want.text)
    if difference:
        return difference
    if got.refs != want.refs:
        return Difference("references", f"ours {got.refs[:50]}\nreference {want.refs[:50]}")
    if got.records == want.records:
        return None
    text = first_difference("record", got.records, want.records)
    if got.kind == "BAM" and list(map(without_bin, got.records)) == list(
            map(without_bin, want.records)):
        return Difference("bin", text)
    return Difference("record", text)


def compare_files(case, _ours, folder):
    """The first Difference between the files of two successful runs."""
    want = read_output(f"{folder}/want.{case.way_out}", folder)
    if isinstance(want, Difference):
        raise ReferenceTrouble("the reference's output: " + want.text)
    got = read_output(f"{folder}/ours/got.{case.way_out}", folder)
    return got if isinstance(got, Difference) else compare_outputs(case, got, want)


def try_case(cases, case, program, folder):
    """Runs both programs in folder, which is emptied first, and returns the Verdict. cases: the
    module of the case."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    cases.write_input(case, folder)
    their_status = reference(cases.their_commands(case, folder), f"{folder}/want.err")
    ours = cases.run_ours(case, program, folder)
    with open(f"{folder}/want.err", encoding="utf-8", errors="replace") as file:
        their_err = file.read()
    difference = compare_status(ours, their_status, their_err) or leftovers(
        cases.wanted_files(case, ours.status), folder)
    if not difference and ours.status == 0:
        difference = cases.compare_files(case, ours, folder)
    runs = re.search(r"(\d+) runs? on disk", ours.err)
    verdict = Verdict(difference, refused=their_status == 1, n_runs=int(runs.group(1)) if runs else 0)
    for deviation in cases.DEVIATIONS:
        if verdict.difference and deviation.explains(case, verdict.difference):
            verdict.difference, verdict.deviation = None, deviation.name
    return verdict
