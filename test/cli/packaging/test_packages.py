"""Versions, the installation and the source tarball. The packages themselves are tested by
`make test-deb` and `make test-workflows`, which take minutes and the network."""

import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import unittest

from harness import BUILD, ROOT, SAMTOOLS, CliTest, environment, text_of, without_pg

# Files with the version besides version.h, and the text around it.
VERSIONED = {
    "doc/samtools-rocksort.1": r'^\.TH SAMTOOLS-ROCKSORT 1 "[\d-]+" "rocksort ([\d.]+)"',
    "NEWS.md": r"^## ([\d.]+)",
    "packaging/conda/meta.yaml": r'{% set version = "([\d.]+)" %}',
    "packaging/debian/changelog": r"^samtools-rocksort \(([\d.]+)-\w+\)",
    "packaging/docker/Dockerfile": r'image\.version="([\d.]+)"',
    "packaging/nextflow/environment.yml": r"samtools-rocksort=([\d.]+)$",
    "packaging/nextflow/main.nf": r"container 'samtools-rocksort:([\d.]+)'",
    "packaging/snakemake/environment.yaml": r"samtools-rocksort =([\d.]+)$",
}
INSTALLED = {
    "bin/rocksort-columns2sam", "bin/samtools", "bin/samtools-rocksort",
    "share/man/man1/rocksort-columns2sam.1", "share/man/man1/samtools-rocksort.1",
    "share/bash-completion/completions/_samtools",
    "share/bash-completion/completions/samtools-rocksort",
    "share/fish/vendor_completions.d/samtools-rocksort.fish",
    "share/fish/vendor_conf.d/samtools-rocksort.fish",
    "share/zsh/site-functions/_samtools-rocksort",
}

# Runs the wrapper as Snakemake does, with a shell that also prints the words of its command.
WRAPPER_RUN = """
import inspect, shlex, subprocess, sys, types
def shell(text):
    words = shlex.split(text.format(**inspect.currentframe().f_back.f_locals))
    print("\\n".join(words))
    subprocess.run(words, check=True)
class Names(dict):
    def __iter__(self):
        return iter(self.values())
    def __getitem__(self, i):
        return list(self.values())[i]
module = types.ModuleType("snakemake.shell")
module.shell = shell
sys.modules.update({{"snakemake": types.ModuleType("snakemake"), "snakemake.shell": module}})
snakemake = types.SimpleNamespace(
    input=Names(one={source!r}), output=Names(bam={out!r}), params={params!r}, resources={{}},
    threads=1, log_fmt_shell=lambda **_: "")
with open({wrapper!r}) as file:
    exec(file.read())
""".replace("{wrapper!r}", repr(str(ROOT / "packaging/snakemake/wrapper.py")))


def version():
    """The version of version.h."""
    text = (ROOT / "src/util/version.h").read_text()
    return re.search(r'ROCKSORT_VERSION "([^"]+)"', text).group(1)


def is_checkout():
    """Whether this is a git checkout with a commit."""
    try:
        done = subprocess.run(["git", "rev-parse", "--verify", "--quiet", "HEAD"], cwd=ROOT,
                              capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0 and (ROOT / ".git").exists()


class Packages(CliTest):
    """Tests that need no network."""

    def wrapper(self, sources, out, params, outputs="", status=0):
        """Runs the wrapper of Snakemake. Returns the words of its command, and its messages."""
        code = WRAPPER_RUN.format(source=sources[0], out=out, params=params).replace(
            f"Names(one={sources[0]!r})", f"Names(enumerate({sources!r}))").replace(
                f"bam={out!r}", f"bam={out!r}{outputs}")
        env = environment(self.scratch)
        env["PATH"] = f"{pathlib.Path(SAMTOOLS).parent}:{env['PATH']}"
        result = self.run_program([sys.executable, "-B", "-c", code], env_only=env)
        self.assertEqual(result.status, status, result.err)
        return result.out.decode().splitlines(), result.err

    def mates(self):
        return self.write("in.sam", "@SQ\tSN:x\tLN:300\n" + "".join(
            f"q\t{flag}\tx\t{flag}\t9\t4M\t*\t0\t0\tACGT\tFFFF\n" for flag in (65, 129)))

    def test_snakemake_wrapper_makes_the_options(self):
        for fixmate, markdup, words in (
                (None, None, []), (False, False, []), (True, None, ["--fixmate"]),
                ("-p -c", True, ["--fixmate=-p -c", "--markdup"]),
                (True, "--duplicate-count -S", ["--fixmate", "--markdup=--duplicate-count -S"])):
            with self.subTest(fixmate=fixmate, markdup=markdup):
                out = self.path("out.sam")
                params = {name: value for name, value in (("fixmate", fixmate),
                                                          ("markdup", markdup))
                          if value is not None}
                argv, _ = self.wrapper([self.mates()], out, params)
                self.assertEqual([word for word in argv
                                  if word.startswith(("--fixmate", "--markdup"))], words)
                text = text_of(out)
                self.assertEqual("ms:i:" in text, bool(fixmate))
                self.assertEqual("ct:Z:" in text, fixmate == "-p -c")
                self.assertEqual("dc:i:1" in text, markdup not in (None, False, True))

    def test_snakemake_wrapper_splits_and_merges(self):
        source = self.write("in.sam", "@SQ\tSN:x\tLN:300\n@SQ\tSN:y\tLN:300\n" + "".join(
            f"q{i}\t0\t{'yx'[i % 2]}\t{99 - i}\t9\t4M\t*\t0\t0\tACGT\tFFFF\n" for i in range(50)))
        groups = [self.path(f"groups/{name}.bam") for name in ("x", "y", "unplaced")]
        for sources, out, params, words in (
                ([source], self.path("groups"), {"split_by": "contig"},
                 ["--split-by", "contig", "-o", self.path("groups/%.bam")]),
                (groups, self.path("out.sam"), {"merge": True},
                 ["--merge", "-o", self.path("out.sam")])):
            argv, _ = self.wrapper(sources, out, params)
            self.assertEqual([word for word in argv if word in words], words)
            self.assertEqual([name for name in os.listdir(self.work) if "rocksort" in name], [])
        self.assertEqual(sorted(os.listdir(self.path("groups"))), sorted(
            os.path.basename(path) + suffix for path in groups for suffix in ("", ".csi")))
        self.sort_ok("-o", self.path("want.sam"), source)
        got, want = (without_pg(text_of(self.path(name))) for name in ("out.sam", "want.sam"))
        self.assertEqual(got, want)

    def test_snakemake_wrapper_writes_reports(self):
        names = {"flagstat": "a.flagstat", "idxstats": "a.idxstats", "coverage": "a.coverage",
                 "dups": "with blank.dups", "metrics": "a.metrics"}
        outputs = "".join(f", {name}={self.path(file)!r}" for name, file in names.items())
        for markdup in (True, "-S"):
            self.wrapper([self.mates()], self.path("out.sam"), {"fixmate": True, "markdup": markdup},
                         outputs)
            texts = {name: text_of(self.path(file)) for name, file in names.items()}
            self.assertIn("2 + 0 in total", texts["flagstat"])
            self.assertEqual(texts["idxstats"], "x\t300\t2\t0\n*\t0\t0\t0\n")
            self.assertIn("x\t1\t300\t2\t", texts["coverage"])
            self.assertIn("READ: 2\n", texts["dups"])
            self.assertIn("DuplicationMetrics", texts["metrics"])
            self.assertEqual("markdup -S -f" in texts["dups"], markdup == "-S")
        _, err = self.wrapper([self.mates()], self.path("out.sam"), {"fixmate": True}, outputs, 1)
        self.assertIn("a.metrics needs params.markdup", err)

    def make(self, *args, umask=0o022):
        env = environment(self.scratch)
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PREFIX", "DESTDIR", "SAN", "WERROR"):
            env.pop(name, None)
        done = subprocess.run(["make", "-s", *args], cwd=ROOT, env=env, umask=umask, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout

    def test_all_files_have_the_version_of_version_h(self):
        for name, pattern in VERSIONED.items():
            found = re.search(pattern, (ROOT / name).read_text(), re.M)
            self.assertIsNotNone(found, f"no version in {name}")
            self.assertEqual(found.group(1), version(), f"{name} is behind version.h")

    def test_version_names_the_libraries(self):
        result = self.run_program([SAMTOOLS, "rocksort", "--version"])
        self.assertEqual((result.status, result.err), (0, ""))
        first, second, third = result.out.decode().splitlines()
        self.assertEqual(first, f"samtools rocksort {version()}")
        self.assertRegex(second, r"^Using htslib \d+\.\d+\S*, (libdeflate \d+\.\d+\S*, )?"
                                 r"(ISA-L \d+\.\d+\.\d+, )?zlib \d+\.\d+\S*, "
                                 r"RocksDB \d+\.\d+\.\d+, snappy \d+\.\d+\S*, lz4 \d+\.\d+\S*, "
                                 r"zstd \d+\.\d+\S*, xxHash 0\.\d+\.\d+$")
        self.assertRegex(third, r"^Deflates BAM by (igzip at level 1, by )?rocksort up to level 5 and "
                                r"by default, by (libdeflate|zlib) from level 6 on$")

    def test_all_files_are_installed_readable_for_everyone(self):
        for extra, moved in (([], {}),
                             (["SAMTOOLS_DIR=/usr/lib/rocksort/bin"],
                              {"bin/samtools": "lib/rocksort/bin/samtools"})):
            top = self.work / f"install{len(moved)}"
            # The programs are built: -o all leaves that out.
            self.make("-o", "all", f"BIN={BUILD}", "install", "PREFIX=/usr", f"DESTDIR={top}",
                      *extra, umask=0o077 if moved else 0o022)
            found = {str(path.relative_to(top / "usr")) for path in top.rglob("*")
                     if not path.is_dir()}
            self.assertEqual(found, {moved.get(name, name) for name in INSTALLED})
            for name in found:
                mode = (top / "usr" / name).stat().st_mode & 0o777
                self.assertEqual(mode, 0o755 if "bin/" in name else 0o644, name)
            done = self.run_program([top / "usr/bin/samtools-rocksort", "--version"])
            self.assertEqual(done.status, 0, done.err)
            self.make("uninstall", "PREFIX=/usr", f"DESTDIR={top}", *extra)
            self.assertEqual([path for path in top.rglob("*") if not path.is_dir()], [])
        shutil.rmtree(self.work / "install0")
        shutil.rmtree(self.work / "install1")

    def test_uninstall_leaves_what_is_not_ours(self):
        top = self.work / "install"
        self.make("uninstall", "PREFIX=/usr", f"DESTDIR={top}")     # nothing is installed: no error
        self.make("-o", "all", f"BIN={BUILD}", "install", "PREFIX=/usr", f"DESTDIR={top}")
        (top / "usr/bin/samtools").write_text("#!/bin/sh\necho samtools 1.99\n")
        completion = top / "usr/share/bash-completion/completions/_samtools"
        completion.unlink()
        completion.write_text("# of another package\n")
        self.make("uninstall", "PREFIX=/usr", f"DESTDIR={top}")
        self.assertEqual({str(path.relative_to(top / "usr")) for path in top.rglob("*")
                          if not path.is_dir()},
                         {"bin/samtools", "share/bash-completion/completions/_samtools"})
        shutil.rmtree(top)

    @unittest.skipUnless(is_checkout(), "this is no git checkout: there is no `make dist`")
    def test_same_commit_gives_the_same_tarball(self):
        name = f"samtools-rocksort-{version()}"
        sums = set()
        for folder, umask in (("first", 0o022), ("second", 0o077)):
            printed = self.make("dist", f"DIST_DIR={self.work / folder}", umask=umask)
            made = os.listdir(self.work / folder)
            self.assertEqual(made, [f"{name}.tar.gz"])
            path = self.work / folder / made[0]
            sums.add(hashlib.sha256(path.read_bytes()).hexdigest())
            self.assertIn(sorted(sums)[0], printed)
        self.assertEqual(len(sums), 1)
        with gzip.open(path) as data, tarfile.open(fileobj=data) as tar:
            members = {member.name: member for member in tar.getmembers()}
            source = tar.extractfile(f"{name}/src/util/version.h").read()
        self.assertEqual(source, (ROOT / "src/util/version.h").read_bytes())
        self.assertEqual({pathlib.Path(member).parts[0] for member in members}, {name})
        self.assertEqual({member.mode for member in members.values()} - {0o755, 0o644}, set())
        for needed in ("Makefile", "packaging/debian/control", "completions/options.tsv"):
            self.assertIn(f"{name}/{needed}", members)
        for product in ("samtools", "build"):
            self.assertNotIn(f"{name}/{product}", members)
