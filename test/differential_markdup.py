"""One case of the differential test of --markdup: draws templates and options at random, and
compares rocksort with fixmate -m, sort and markdup of samtools 1.24.

The window of samtools markdup, which is 300 bases, is made so large that it plays no part: rocksort
finds duplicates at any distance. See differential_case.py for what is drawn for other cases.
"""

import dataclasses
import functools
import gzip
import os
import random
import re
import shlex

import bamfile
import differential_case as plain
import differential_shrink
import mate_barcodes
import templates
from differential_case import Difference, ReferenceTrouble
from harness import environment, without_pg

WINDOW = ["-l", "100000000"]
NO_REF = ["--output-fmt-option", "no_ref=1"]
FIXMATE = ("", "", "", "-r", "-p", "-c", "-z off")
# How the input of --markdup is made: by --fixmate in the same run, by fixmate before, or at random.
WAYS = {"one pass": 6, "sorted": 2, "grouped": 1, "shuffled": 1, "wild": 1}
FORMATS_IN = {"sam": 3, "bam": 3, "cram": 1}
FORMATS_OUT = {"bam": 5, "sam": 3, "cram": 1}
INDICES = {None: 4, "csi": 1, "bai": 1}
BUFFERS = {None: 3, "20K": 3, "100K": 1}
BUDGETS = {None: 3, 400_000: 1, 1_000_000: 1, 3_000_000: 1}
COORDS = "--read-coords '^([0-9]+)_([0-9]+)_([0-9]+)' --coords-order txy"
BARCODES_IN_NAMES = ("--barcode-name", "--barcode-rgx '[:_]([ACGT+]+)$'")
# Groups of options, of which a case has at most one each; how often it has any; and the form that
# read names must have. Of several words with one meaning each is drawn as often as the others.
OPTIONS = {
    "mode": (0.4, ("--mode s", "-m s", "-m t")),
    "fails": (0.3, ("--include-fails",)),
    "others": (0.4, ("-S",)),
    "remove": (0.2, ("-r",)),
    "clear": (0.3, ("-c",)),
    "barcode": (0.3, ("--barcode-tag RX", "--barcode-tag BX", *BARCODES_IN_NAMES,
                      "--barcode-tag RX --barcode-own")),
    "groups": (0.3, ("--use-read-groups",)),
    "statistics": (0.3, ("-s", "-f stats.txt", "-f stats.txt --json", "--json")),
    "optical": (0.3, ("-d 10", "-d 100", "-d 2500", COORDS + " -d 10",
                      COORDS.replace("txy", "tyx") + " -d 100", "-d 10 --optical-only",
                      "-d 100 --optical-only")),
    "original": (0.3, ("-t",)),
    "chains": (0.2, ("--no-multi-dup",)),
    "count": (0.3, ("--duplicate-count",)),
    "umi": (0.1, tuple(f"--move-umi-to-tag {barcode}{separator}" for barcode in BARCODES_IN_NAMES
                       for separator in ("", " --umi-separator _"))),
}


DEVIATIONS = [
    plain.Deviation("groups of others", "if reads of one name are in several read groups, the "
                    "other records of that name are counted in the group of one of them: samtools "
                    "takes the one that it marked first",
                    lambda case, difference: difference.kind == "groups of others" and
                    {"-S", "--use-read-groups"} <= set(option_words(case))),
]


@dataclasses.dataclass
class Case:
    """An input and how it is sorted. The input is that of fixmate."""

    header: str
    templates: list     # of lists of lines
    options: list       # of --markdup
    fixmate: str = ""
    way: str = "one pass"
    way_in: str = "sam"
    pipe: bool = False
    way_out: str = "bam"
    index: str = None
    buffer: str = None
    budget: int = None
    threads: int = 1
    salt: int = 0

    @property
    def n_records(self):
        return sum(map(len, self.templates))

    def facts(self, verdict):
        """What the case tests, as pairs of what and which."""
        regime = "refused" if verdict.refused else "spilled" if verdict.n_runs else "in memory"
        return (("input", f"{self.way_in} {self.way}"), ("output", self.way_out),
                ("regime", regime), ("index", self.index), ("deviation", verdict.deviation),
                ("half-tagged", shares_barcodes(self) and is_half_tagged(self)),
                *(("option", option.split()[0]) for option in self.options))

    def markdup(self):
        return " ".join(self.options)


# Drawing


def draw_names(rng, options):
    """The form of the read names, a key of templates.Molecules.NAMES, or None for all forms; False
    if no form is one with which samtools 1.24 can do what the options say. It reads memory that it
    has not set if -d meets a name without coordinates."""
    text = " ".join(options)
    forms = set(templates.Molecules.NAMES)
    if COORDS[:13] in text:
        forms &= {"underscores"}
    elif "-d " in text:
        forms &= {"old", "hiseq", "illumina", "umi"}
    if "--barcode-name" in text:
        forms &= {"umi"}
    elif "--barcode-rgx" in text:
        forms &= {"umi", "underscores"}
    if len(forms) == len(templates.Molecules.NAMES):
        return None
    return rng.choice(sorted(forms)) if forms else False


def draw_options(rng, groups):
    """The options of --markdup, in random order, and the form of the read names."""
    while True:
        options = [rng.choice(words) for group, (p, words) in OPTIONS.items()
                   if rng.random() < p and (not groups or group in groups)]
        names = draw_names(rng, options)
        if "--optical-only" in " ".join(options) and {"-S", "-t"} <= set(options):
            options.remove("-t")    # if templates have one name, others get the do of another one
        if names is not False and len(re.findall("--barcode-[tnr]", " ".join(options))) <= 1:
            rng.shuffle(options)
            return options, names


def draw_half_tagged(rng, lines):
    """Takes the barcode from some records of a template."""
    return [re.sub(r"\tRX:Z:[^\t]*", "", line) if rng.random() < 0.4 else line for line in lines]


def draw_case(seed, number, groups=()):
    """Draws case `number` of a seed. groups: keys of OPTIONS, or nothing for all."""
    rng = random.Random(f"markdup:{seed}:{number}")
    options, names = draw_options(rng, groups)
    salt = rng.randrange(2**32)
    n = rng.choice((0, 3, 20, 20, 100, 100, 300, 600))
    way_in, way_out = (plain.weighted(rng, formats) for formats in (FORMATS_IN, FORMATS_OUT))
    way, max_clip = plain.weighted(rng, WAYS), rng.choice((60, 400))
    if way == "wild":
        made = templates.Wild(salt, max_clip, names)
        way_in = "sam" if way_in == "cram" else way_in
        way_out = "sam" if way_out == "cram" else way_out
    elif names is None and rng.random() < 0.25:
        odd = 0 if "cram" in (way_in, way_out) else 0.05
        made = templates.Generator(salt, max_clip, odd)
    else:
        made = templates.Molecules(salt, max_clip, names)
    made.has_marks = "--optical-only" not in " ".join(options)      # see without_others
    case = Case(made.sam(0), [made.template() for _ in range(n)], options, rng.choice(FIXMATE),
                way, way_in, rng.random() < 0.3, way_out, salt=salt)
    if barcode_tag(case):
        p = rng.choice((0, 0.1, 0.5))
        case.templates = [draw_half_tagged(rng, lines) if rng.random() < p else lines
                          for lines in case.templates]
    if is_edited(case) and way_out == "cram":       # which puts the tag RG after all others
        case.way_out = way_out = "sam"
    if way_out == "bam":
        case.index = plain.weighted(rng, INDICES)
    elif way_out == "cram":
        case.index = rng.choice((None, "crai"))
    case.buffer, case.budget = plain.weighted(rng, BUFFERS), plain.weighted(rng, BUDGETS)
    case.threads = rng.choice((1, 2, 4))
    return case


# Command lines


def output_name(case):
    """The output of rocksort, with the name of its index if that is not the usual one."""
    return f"got.{case.way_out}" + ("##idx##got.bam.bai" if case.index == "bai" else "")


def our_command(case, program):
    words = [program, "-@", str(case.threads), "-O", case.way_out, "-o", output_name(case)]
    if case.way_out == "cram":
        words += NO_REF
    if case.index:
        words.append("--write-index")
    if case.way == "one pass":
        words.append("--fixmate=" + case.fixmate)
    words.append("--markdup=" + case.markdup())
    return words + ([] if case.pipe else [f"../in.{case.way_in}"])


def our_environment(case):
    settings = {"ROCKSORT_TEST_SORT_BUFFER": case.buffer, "ROCKSORT_TEST_BUDGET": case.budget,
                "ROCKSORT_TEST_FILE": "32K"}
    return {name: str(value) for name, value in settings.items() if value}


def option_words(case):
    """The options as the reference gets them."""
    return shlex.split(case.markdup())


def barcode_tag(case):
    """The tag in which barcodes are, or None."""
    words = option_words(case)
    return words[words.index("--barcode-tag") + 1] if "--barcode-tag" in words else None


def shares_barcodes(case):
    """Whether reads get the barcode of their mate, which samtools does not do."""
    return (barcode_tag(case) and "--barcode-own" not in option_words(case) and
            case.way == "one pass")


def is_half_tagged(case):
    """Whether some records of a template have a barcode, and others do not."""
    text = f"\t{barcode_tag(case)}:Z:"
    return any(0 < sum(text in line for line in lines) < len(lines) for lines in case.templates)


def their_words(case):
    """Those of them that the reference gets."""
    words = option_words(case)
    if "--barcode-own" in words:
        words.remove("--barcode-own")
    if moves_umi(case):
        words.remove("--move-umi-to-tag")
    if only_optical(case):
        words = [word for word in words if word not in ("--optical-only", "-r")]
    if "--umi-separator" in words:
        at = words.index("--umi-separator")
        del words[at:at + 2]
    return words


def asks_for_statistics(case):
    """Whether statistics are written, to a file or to standard error."""
    return any(word in ("-s", "-f", "--json") for word in option_words(case))


def moves_umi(case):
    """Whether barcodes are moved from names to tags. samtools 1.24 forgets that in most records, so
    that it does not get the option."""
    return "--move-umi-to-tag" in case.markdup()


def only_optical(case):
    """Whether only optical duplicates are marked. samtools 1.24 marks the others, too."""
    return "--optical-only" in case.markdup()


def is_edited(case):
    """Whether the output of samtools is edited, as text, before it is compared."""
    return moves_umi(case) or only_optical(case)


def without_others(case, lines):
    """What --optical-only makes of the lines of a sorted file that samtools has marked, of which
    none was marked before."""
    words, edited = option_words(case), []
    rows = [line.split("\t") for line in lines if line]
    optical = [row for row in rows if "dt:Z:SQ" in row and not int(row[1]) & 0x904]
    names = {row[0] for row in optical if int(row[1]) & 8 or
             any(field[:5] in ("SA:Z:", "XA:Z:") for field in row)}
    for row in rows:
        flag = int(row[1])
        stays = flag & 0x400 and not (row[0] in names if flag & 0x904 else "dt:Z:SQ" in row)
        if stays:
            row[1] = str(flag & ~0x400)
            row[:] = [field for field in row if field[:5] not in ("dt:Z:", "do:Z:")]
            row += ["dc:i:1"] * ("--duplicate-count" in words)
        elif flag & 0x400 and "-r" in words:
            continue
        edited.append("\t".join(row).replace("dt:Z:LB", "dt:Z:SQ"))
    return edited + [""] * (lines[-1:] == [""])


def with_umi_moved(case, line):
    """What --move-umi-to-tag makes of a line of SAM."""
    words, fields = option_words(case), line.split("\t")
    pattern = "(?:[0-9A-Za-z]+:){7}([!-?A-~]+)"
    if "--barcode-rgx" in words:
        pattern = words[words.index("--barcode-rgx") + 1]
    separator = words[words.index("--umi-separator") + 1] if "--umi-separator" in words else ":"
    found = re.search(pattern, fields[0])
    if not found:
        return line
    start, end = found.span(1)
    if fields[0][:start].endswith(separator):
        start -= 1
    elif fields[0][end:].startswith(separator):
        end += 1
    fields[0] = fields[0][:start] + fields[0][end:]
    tag, old = "RX:Z:" + found[1], [i for i, text in enumerate(fields) if text.startswith("RX:")]
    if old:
        fields[old[0]] = tag
    else:
        fields.append(tag)
    return "\t".join(fields)


def their_commands(case, folder):
    source = f"{folder}/in.{case.way_in}"
    commands = []
    if case.way == "one pass":
        fixed = f"{folder}/fixed.bam"
        if shares_barcodes(case):
            plain_input, filled = f"{folder}/plain.bam", f"{folder}/filled.bam"
            commands += [["view", "--no-PG", "-u", "-o", plain_input, source],
                         functools.partial(mate_barcodes.fill, plain_input, barcode_tag(case),
                                           filled)]
            source = filled
        commands.append(["fixmate", "-m", "-u", "--no-PG", *case.fixmate.split(), source, fixed])
        source = fixed
    ordered, out = f"{folder}/sorted.bam", f"{folder}/want.bam"
    report = []
    if asks_for_statistics(case):       # pysam keeps standard error to itself
        report = ["-f", f"{folder}/want.stats.txt"]
    commands.append(["sort", "-u", "--no-PG", "-o", ordered, source])
    markdup = ["markdup", "--no-PG", *WINDOW, *their_words(case), *report]
    commands.append([*markdup, ordered, out])
    return commands + in_format(case, out, f"{folder}/want")


def in_format(case, path, name):
    """Commands that bring a BAM into the form in which outputs are compared."""
    commands = []
    if case.way_out == "cram":
        commands.append(["view", "--no-PG", "-C", *NO_REF, "-o", name + ".cram", path])
        path = name + ".cram"
    if case.way_out != "bam" or is_edited(case):
        commands.append(["view", "--no-PG", "-h", "-o", name + ".sam", path])
    return commands


def show_commands(case, program, _folder):
    def line(words):
        if callable(words):
            return f"(tag {barcode_tag(case)} is copied to mates without it)"
        return shlex.join(words)
    ours = line(our_command(case, program))
    if case.pipe:
        ours = f"cat ../in.{case.way_in} | {ours}"
    ours = " ".join([f"{key}={value}" for key, value in our_environment(case).items()] + [ours])
    return f"ours:      {ours}\n" + "\n".join(
        "reference: samtools " + line(words) for words in their_commands(case, ".."))


def show_input(case):
    text = sam_text(case)
    return text if len(text) < 6000 else text[:6000] + f"... ({len(text)} bytes)\n"


# Input files


def sam_text(case):
    return case.header + "".join(line + "\n" for lines in case.templates for line in lines)


def make(commands, folder):
    """Runs commands of the reference, which must succeed."""
    if plain.reference(commands, f"{folder}/make.err") != 0:
        raise ReferenceTrouble("the reference cannot make this input")


def write_input(case, folder):
    """Writes the input in its format, with what fixmate adds if it is not run later."""
    at, name = f"{folder}/source.sam", f"{folder}/in.{case.way_in}"
    with open(at, "w", encoding="ascii") as file:
        file.write(sam_text(case))
    if case.way not in ("one pass", "wild"):
        fixed = f"{folder}/source.bam"
        make([["fixmate", "-m", "--no-PG", at, fixed]], folder)
        at = fixed
    if case.way == "sorted":
        make([["sort", "--no-PG", "-o", f"{folder}/source.sorted.bam", at]], folder)
        at = f"{folder}/source.sorted.bam"
    if case.way == "shuffled":
        bam = bamfile.read(at)
        records = bamfile.split(bam.records)
        random.Random(case.salt).shuffle(records)
        at = f"{folder}/source.shuffled.bam"
        with open(at, "wb") as file:
            file.write(bamfile.bgzf(bamfile.bam_header(bam.text, bam.refs) + b"".join(records)))
    kind = {"sam": ["-h"], "bam": ["-b"], "cram": ["-C", *NO_REF]}[case.way_in]
    make([["view", "--no-PG", *kind, "-o", name, at]], folder)


# Running and comparing


def run_ours(case, program, folder):
    return plain.run_program(our_command(case, program), folder,
                             f"{folder}/in.{case.way_in}" if case.pipe else None, os.devnull,
                             environment(f"{folder}/scratch", None, our_environment(case)))


def wanted_files(case, status):
    """The files that a run leaves."""
    if status != 0:
        return []
    return ([f"got.{case.way_out}"] + [f"got.{case.way_out}.{case.index}"] * bool(case.index) +
            ["stats.txt"] * ("-f stats.txt" in case.markdup()))


def read_sam(path):
    """Header without @PG and records of SAM text."""
    with open(path, encoding="latin-1") as file:
        lines = file.read().split("\n")
    n_header = next((i for i, line in enumerate(lines) if not line.startswith("@")), len(lines))
    return without_pg("\n".join(lines[:n_header])), lines[n_header:]


def read_outputs(case, folder):
    """(header, records) of both outputs."""
    got, want = f"{folder}/ours/got", f"{folder}/want"
    if case.way_out == "bam" and not is_edited(case):
        return [(without_pg(bam.text), bamfile.split(bam.records))
                for bam in (bamfile.read(path + ".bam") for path in (got, want))]
    if case.way_out != "sam":
        path, got = f"{got}.{case.way_out}", f"{folder}/got"
        make([["view", "--no-PG", "-h", "-o", f"{got}.sam", path]], folder)
    outputs = [read_sam(path + ".sam") for path in (got, want)]
    if only_optical(case):
        outputs[1] = outputs[1][0], without_others(case, outputs[1][1])
    if moves_umi(case):
        outputs[1] = outputs[1][0], [with_umi_moved(case, line) for line in outputs[1][1]]
    return outputs


def without_length(record):
    """A record without the length of its template."""
    if isinstance(record, bytes):
        return record[:32] + record[36:]
    fields = record.split("\t")
    return "\t".join(fields[:8] + fields[9:])


def compare_outputs(case, folder):
    """The first Difference of headers or records."""
    (got_header, got), (want_header, want) = read_outputs(case, folder)
    if case.way_in == "cram" and case.way != "one pass":
        # CRAM does not store most of these lengths, and versions of htslib do not agree in their
        # sign if both reads begin at one position.
        got, want = ([without_length(record) for record in records] for records in (got, want))
    if got_header != want_header:
        return Difference("header", plain.first_difference("line", got_header, want_header))
    if got == want:
        return None
    kind = "record"
    if case.way_out == "bam" and list(map(plain.without_bin, got)) == list(
            map(plain.without_bin, want)):
        kind = "bin"
    return Difference(kind, plain.first_difference("record", got, want))


def compare_index(case, folder):
    """A Difference if the index is not the one that the reference makes."""
    if not case.index:
        return None
    path = f"{folder}/ours/got.{case.way_out}"
    want = f"{folder}/want.{case.index}"
    make([["index", *({"csi": ["-c"], "bai": ["-b"]}.get(case.index, [])), path, want]], folder)
    texts = []
    for name in (f"{path}.{case.index}", want):
        with open(name, "rb") as file:
            data = file.read()
        texts.append(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    return None if texts[0] == texts[1] else Difference("index", f"{path}.{case.index} differs")


def statistics(text):
    """The lines of statistics among others, without the command."""
    return [line for line in text.split("\n")
            if re.match(r'[A-Z_ ]+: [^ ]+$| *"[A-Z_ ]+": |[ \]{}]', line) and "COMMAND" not in line]


def compare_statistics(case, ours, folder):
    """The first Difference of the statistics."""
    if not asks_for_statistics(case):
        return None
    got = ours.err
    if "-f stats.txt" in case.markdup():
        with open(f"{folder}/ours/stats.txt", encoding="utf-8") as file:
            got = file.read()
    with open(f"{folder}/want.stats.txt", encoding="utf-8") as file:
        got, want = statistics(got), statistics(file.read())
    if only_optical(case):      # what is written, and what is marked beside duplicates
        got, want = ([line for line in lines if not re.search("WRITTEN|NON PRIM|DUPLICATE TOT", line)]
                     for lines in (got, want))
    if got == want:
        return None
    others = [all(re.search("NON PRIMARY|DUPLICATE TOTAL", line) for line in pair)
              for pair in zip(got, want) if pair[0] != pair[1]]
    return Difference("groups of others" if all(others) and len(got) == len(want) else "statistics",
                      plain.first_difference("line", got, want))


def compare_files(case, ours, folder):
    """The first Difference between the files of two successful runs."""
    return (compare_outputs(case, folder) or compare_index(case, folder) or
            compare_statistics(case, ours, folder))


class Shrinker(differential_shrink.Shrinker):
    SETTINGS = ({"buffer": None}, {"budget": None}, {"pipe": False}, {"index": None},
                {"way_in": "sam"}, {"way_out": "sam"}, {"way": "one pass"}, {"fixmate": ""},
                {"threads": 1})

    @staticmethod
    def can_be_said(case):
        return True

    def passes(self):
        return self.simplify_settings, self.drop_templates, self.drop_options

    def drop_templates(self):
        self.drop_from(self.case.templates, lambda some: self.change(templates=some))
        for i, lines in enumerate(self.case.templates[:20]):
            self.drop_from(lines, lambda some, i=i: self.change(
                templates=self.case.templates[:i] + [some] + self.case.templates[i + 1:]))
