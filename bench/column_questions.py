#!/usr/bin/env python3
"""Answers a question of doc/column-questions.md in one of five ways and prints the rows.

    column_questions.py shell|duckdb|polars|pysam|awk NUMBER [SAMTOOLS]

The current directory has sample.parquet, sample.bam with its index, and regions.bed, sorted. The
SQL and the lines of Polars are the cells of the page; the SQL runs in DuckDB's shell, which is the
package duckdb-cli of PyPI or `duckdb` of the PATH, and in Python. pysam and awk read the BAM. Each
way may use two threads. The rows of two ways are the same, but may come in another order. Each way
imports only what it needs, since its start is a part of what is measured.
"""

import collections
import os
import re
import sys

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                    "doc", "column-questions.md")
WAYS = ("shell", "duckdb", "polars", "pysam", "awk")

DUCKDB_SETTINGS = ("set threads to 2", "set enable_progress_bar = false")

UNMAPPED, DUPLICATE = 0x4, 0x400
NOT_PRIMARY = 0x900             # secondary or supplementary
NOT_COUNTED = 0x704             # unmapped, secondary, failed or duplicate

# number: that of the question; None: the cell prepares those below. language: "sql" or "python".
Cell = collections.namedtuple("Cell", "number language code")


# ---- the page ----


def read_page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def read_cells():
    """The cells of the page, in their order."""
    cells, number = [], None
    for heading, language, code in re.findall(r"^## ([^\n]*)$|^```(\w+)\n(.*?)^```$", read_page(),
                                              re.M | re.S):
        if heading:
            match = re.match(r"(\d+)\. ", heading)
            number = int(match[1]) if match else None
        else:
            cells.append(Cell(number, language, code))
    return cells


def read_titles():
    """{number: the heading of the question}."""
    return {int(number): title
            for number, title in re.findall(r"^## (\d+)\. (.*)$", read_page(), re.M)}


def cells_of(language, number):
    """The code to run for a question: the cells above it that answer nothing, and its own."""
    found = []
    for cell in read_cells():
        if cell.language == language and cell.number in (None, number):
            found.append(cell.code)
        if cell.language == language and cell.number == number:
            return found
    raise SystemExit("column_questions: the page has no %s of question %d" % (language, number))


def find_shell():
    """DuckDB's program, or None."""
    import importlib.util
    import shutil
    package = importlib.util.find_spec("duckdb_cli")
    if package is None:
        return shutil.which("duckdb")
    # Beside it the package has one in Python, which starts it later.
    return os.path.join(package.submodule_search_locations[0], "duckdb")


def shell_words(number):
    """The command that has DuckDB's shell print the rows."""
    words = [find_shell(), "-no-init", "-batch", "-bail", "-list", "-separator", "\t", "-noheader",
             "-nullvalue", ""]
    for code in [*DUCKDB_SETTINGS, *cells_of("sql", number)]:
        words += ["-c", code]
    return words


def duckdb_rows(number):
    import duckdb
    for code in DUCKDB_SETTINGS:
        duckdb.sql(code)
    for code in cells_of("sql", number):
        answer = duckdb.sql(code)
    return answer.fetchall()


def polars_rows(number):
    os.environ["POLARS_MAX_THREADS"] = "2"      # which Polars reads when it is imported
    names = {}
    for code in cells_of("python", number):
        exec(code, names)
    return names["answer"].rows()


# ---- pysam ----


def all_reads():
    import pysam
    return pysam.AlignmentFile("sample.bam", threads=2).fetch(until_eof=True)


def reads_by_region():
    """(region, its reads) for each line of regions.bed."""
    import pysam
    bam = pysam.AlignmentFile("sample.bam")
    with open("regions.bed", encoding="ascii") as file:
        for line in file:
            chrom, start, stop = line.split()
            region = chrom, int(start), int(stop)
            yield region, bam.fetch(*region)


def pysam_histograms():
    mapqs, sizes = collections.Counter(), collections.Counter()
    for read in all_reads():
        mapqs[read.mapping_quality] += 1
        sizes[abs(read.template_length)] += 1
    yield from ((mapq, None, n) for mapq, n in mapqs.items())
    yield from ((None, size, n) for size, n in sizes.items())


def pysam_lanes():
    import statistics
    sizes = collections.defaultdict(list)
    for read in all_reads():
        if (read.is_proper_pair and read.template_length > 0
                and not read.flag & (NOT_PRIMARY | DUPLICATE)):
            sizes[read.query_name.split(":")[3]].append(read.template_length)
    for lane, found in sizes.items():
        yield lane, len(found), float(statistics.median(found))


def pysam_clips():
    kinds, cycles = collections.Counter(), collections.Counter()
    for read in all_reads():
        if not read.flag & NOT_PRIMARY:
            kinds[read.cigarstring or "", read.is_reverse] += 1
    for (cigar, is_reverse), n_reads in kinds.items():
        parts = [(int(n), op) for n, op in re.findall(r"(\d+)(\D)", cigar)]
        length = sum(n for n, op in parts if op in "MIS=X")
        left = parts[0][0] if parts and parts[0][1] == "S" else 0
        right = parts[-1][0] if len(parts) > 1 and parts[-1][1] == "S" else 0
        if is_reverse:
            left, right = right, left
        for cycle in [*range(1, left + 1), *range(length - right + 1, length + 1)]:
            cycles[cycle] += n_reads
    return cycles.items()


def pysam_split_reads():
    joins = collections.Counter()
    for read in all_reads():
        if not read.flag & (NOT_PRIMARY | DUPLICATE) and read.has_tag("SA"):
            other, place = read.get_tag("SA").split(",")[:2]
            joins[read.reference_name, (read.reference_start + 1) // 1000,
                  other, int(place) // 1000] += 1
    return [(*places, n) for places, n in joins.items() if n >= 5]


def pysam_coverage():
    for (chrom, start, stop), reads in reads_by_region():
        bases = sum(min(read.reference_end, stop) - max(read.reference_start, start)
                    for read in reads if not read.flag & NOT_COUNTED)
        if bases:
            yield chrom, start, stop, bases


def pysam_regions():
    for region, reads in reads_by_region():
        n = uncertain = duplicates = clipped = far_mate = 0
        for read in reads:
            if read.flag & UNMAPPED:
                continue
            n += 1
            uncertain += read.mapping_quality < 20
            duplicates += read.is_duplicate
            clipped += "S" in read.cigarstring
            far_mate += abs(read.template_length) > 1000
        if n:
            yield (*region, n, uncertain, duplicates, clipped, far_mate)


PYSAM = {1: pysam_histograms, 2: pysam_lanes, 3: pysam_clips, 4: pysam_split_reads,
         5: pysam_coverage, 6: pysam_regions}


# ---- samtools view and awk ----

# Calls hit(i) for each region that a read overlaps. Regions before `low` end before the read.
AWK_REGIONS = r"""
BEGIN {
    while ((getline line < "regions.bed") > 0) {
        split(line, field)
        chrom[++n] = field[1]; start[n] = field[2]; stop[n] = field[3]
        if (!(field[1] in low)) low[field[1]] = n
        high[field[1]] = n
    }
}
$3 in low {
    end = $4 - 1
    for (cigar = $6; match(cigar, /^[0-9]+/); cigar = substr(cigar, RLENGTH + 2))
        if (substr(cigar, RLENGTH + 1, 1) ~ /[MDN=X]/) end += substr(cigar, 1, RLENGTH)
    while (low[$3] < high[$3] && stop[low[$3]] < $4) low[$3]++
    for (i = low[$3]; i <= high[$3] && start[i] < end; i++)
        if (stop[i] >= $4) hit(i)
}
function name(i) { return chrom[i] "\t" start[i] "\t" stop[i] }
"""

# number: (options of samtools view, the program).
AWK = {
    1: ([], r"""
{ mapq[$5]++; size[$9 < 0 ? -$9 : $9]++ }
END {
    for (x in mapq) print x, "", mapq[x]
    for (x in size) print "", x, size[x]
}"""),
    2: (["-f", "2", "-F", "3328"], r"""
$9 > 0 { split($1, part, ":"); n[part[4]]++; size[part[4], $9]++; if ($9 > most) most = $9 }
function nth(lane, k,    i) { for (i = 0; k > 0; k -= size[lane, i]) i++; return i }
END {
    for (lane in n)
        printf "%s\t%d\t%.1f\n", lane, n[lane],
            (nth(lane, int((n[lane] + 1) / 2)) + nth(lane, int(n[lane] / 2) + 1)) / 2
}"""),
    3: (["-F", "2304"], r"""
$6 ~ /S/ { kinds[$6 "\t" int($2 / 16) % 2]++ }
END {
    for (kind in kinds) {
        split(kind, part, "\t")
        bases_of_read = left = right = 0
        for (cigar = kind; match(cigar, /^[0-9]+/); cigar = substr(cigar, RLENGTH + 2)) {
            bases = substr(cigar, 1, RLENGTH) + 0; op = substr(cigar, RLENGTH + 1, 1)
            if (op == "S") { if (cigar == kind) left = bases; else right = bases }
            if (op ~ /[MIS=X]/) bases_of_read += bases
        }
        if (part[2]) { bases = left; left = right; right = bases }
        for (i = 1; i <= left; i++) clipped[i] += kinds[kind]
        for (i = bases_of_read - right + 1; i <= bases_of_read; i++) clipped[i] += kinds[kind]
    }
    for (i in clipped) print i, clipped[i]
}"""),
    4: (["-F", "3328"], r"""
match($0, /\tSA:Z:[^\t]*/) {
    split(substr($0, RSTART + 6, RLENGTH - 6), part, ",")
    joins[$3 "\t" int($4 / 1000) "\t" part[1] "\t" int(part[2] / 1000)]++
}
END { for (places in joins) if (joins[places] >= 5) print places, joins[places] }"""),
    5: (["-F", "1796", "-M", "-L", "regions.bed"], AWK_REGIONS + r"""
function hit(i) {
    bases[i] += (end < stop[i] ? end : stop[i]) - ($4 > start[i] ? $4 - 1 : start[i])
}
END { for (i in bases) print name(i), bases[i] }"""),
    6: (["-F", "4", "-M", "-L", "regions.bed"], AWK_REGIONS + r"""
function hit(i) {
    reads[i]++
    uncertain[i] += $5 < 20
    duplicates[i] += int($2 / 1024) % 2
    clipped[i] += $6 ~ /S/
    far_mate[i] += $9 > 1000 || $9 < -1000
}
END {
    for (i in reads) print name(i), reads[i], uncertain[i], duplicates[i], clipped[i], far_mate[i]
}"""),
}


def run_awk(number, samtools):
    """Prints the rows. Returns the exit code."""
    import subprocess
    options, program = AWK[number]
    view = subprocess.Popen([samtools, "view", "-@2", *options, "sample.bam"],
                            stdout=subprocess.PIPE)
    done = subprocess.run(["awk", "-F", "\t", "-v", "OFS=\t", program], stdin=view.stdout,
                          check=False)
    view.stdout.close()
    return view.wait() or done.returncode


def main(way, number, samtools="samtools"):
    number = int(number)
    if way == "awk":
        return run_awk(number, samtools)
    if way == "shell":
        import subprocess
        return subprocess.run(shell_words(number), check=False).returncode
    rows = {"duckdb": duckdb_rows, "polars": polars_rows,
            "pysam": lambda number: PYSAM[number]()}[way](number)
    for row in rows:
        print(*("" if value is None else value for value in row), sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
