"""Snakemake wrapper of samtools rocksort; meta.yaml says what it takes."""

__author__ = "the samtools rocksort authors"
__license__ = "MIT"

import json
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

from snakemake.shell import shell

PROGRAM = "samtools-rocksort"
# For Snakemake's process in the job and for what rocksort takes beyond its budget.
OTHER_MIB = 256
# In tmpdir: what the temporary data are of.
NOTE = "job.json"
# Outputs that are options of rocksort, and those that are options of --markdup.
COUNTS = ("flagstat", "idxstats", "coverage")
MARKDUP_REPORTS = {"dups": "-f", "metrics": "--metrics"}


def memory_options(resources):
    """--max-memory by the job's memory, or nothing where it has no limit."""
    mib = resources.get("mem_mib") or resources.get("mem_mb")
    if not isinstance(mib, (int, float)) or mib <= 0:
        return []
    return ["--max-memory", f"{int(max(mib - OTHER_MIB, mib // 2, 1))}M"]


def step_option(name, reports=()):
    """params.fixmate or params.markdup: nothing or False; True; or options of samtools fixmate or
    markdup in one text. reports: further words of that text."""
    value = snakemake.params.get(name)
    if not value:
        if reports:
            raise ValueError(f"output {reports[-1]} needs params.{name}")
        return []
    words = ([] if value is True else [str(value)]) + [shlex.quote(word) for word in reports]
    return [f"--{name}={' '.join(words)}" if words else f"--{name}"]


def markdup_reports():
    """Words of --markdup for the outputs that it writes."""
    words = []
    for name, option in MARKDUP_REPORTS.items():
        if snakemake.output.get(name):
            words += [option, str(snakemake.output.get(name))]
    return words


def left_checkpoint(tmpdir, job, inputs):
    """What an earlier attempt of this very job left in tmpdir, if no input is newer; else None."""
    checkpoints = [path for path in tmpdir.glob("rocksort.*/STORE") if path.is_file()]
    note = tmpdir / NOTE
    # A rule whose order of sorting was changed must not get what was sorted by another one.
    if len(checkpoints) != 1 or not note.is_file() or note.read_text() != job:
        return None
    made = checkpoints[0].stat().st_mtime
    for name in inputs:
        status = Path(name).stat()
        if not stat.S_ISREG(status.st_mode) or status.st_mtime > made:
            return None
    return checkpoints[0].parent


def run(arguments):
    """Runs rocksort with the arguments, and what is in params.extra before them."""
    log = snakemake.log_fmt_shell(stdout=True, stderr=True, append=True)
    command = f"{PROGRAM} {snakemake.params.get('extra', '')} {shlex.join(arguments)}"
    shell("{command} {log}")


def main():
    """Resumes what an earlier attempt of the job left, or sorts."""
    reference = snakemake.input.get("ref")
    inputs = [str(name) for name in snakemake.input if name != reference]
    output = snakemake.output.get("bam", snakemake.output[0])
    index = snakemake.output.get("idx")
    tmpdir = Path(snakemake.params.get("tmpdir", f"{output}.rocksort"))
    steps = step_option("fixmate") + step_option("markdup", markdup_reports())
    if snakemake.params.get("merge"):
        steps.append("--merge")
    if snakemake.params.get("split_by"):
        # The output is a directory(), which Snakemake does not make.
        steps += ["--split-by", str(snakemake.params.get("split_by"))]
        Path(output).mkdir(parents=True, exist_ok=True)
        output = f"{output}/%.bam"
    job = json.dumps([inputs, str(reference), str(snakemake.params.get("extra", "")), steps])

    options = ["-@", str(snakemake.threads), *memory_options(snakemake.resources), *steps]
    if reference:
        options += ["--reference", str(reference)]
    for name in COUNTS:
        if snakemake.output.get(name):
            options += [f"--{name}", str(snakemake.output.get(name))]
    if index:
        options += ["--write-index", "-o", f"{output}##idx##{index}"]
    else:
        options += ["-o", str(output)]

    if tmpdir.is_dir():
        checkpoint = left_checkpoint(tmpdir, job, inputs)
        if checkpoint:
            try:
                run(["--resume", str(checkpoint), *options])
                shutil.rmtree(tmpdir)
                return
            except subprocess.CalledProcessError:
                pass  # it has said why; the input is still there
        shutil.rmtree(tmpdir)
    tmpdir.mkdir(parents=True)
    (tmpdir / NOTE).write_text(job)
    run([*options, "-T", str(tmpdir), *inputs])
    shutil.rmtree(tmpdir)


main()
