"""The Makefile: short lines, help, one message for what is missing. Most tests build a tree of a
few lines of C, with the Makefile and scripts of this one."""

import os
import re
import shutil
import subprocess

from harness import ROOT, SLOW, CliTest, environment

MAIN = "int main(void)\n{\n    return 0;\n}\n"
SOURCES = {
    "src/cli/samtools.c": MAIN,
    "src/cli/samtools_rocksort.c": MAIN,
    "src/util/one.c": "int one(void);\nint one(void)\n{\n    return 1;\n}\n",
    "src/util/version.h": '#define ROCKSORT_VERSION "0.1"\n',
    "src/util/size.c": "int two(void);\nint two(void)\n{\n    return 2;\n}\n",
    "test/fault/fault_inject.c": "",
    "test/tools/fork-server.c": MAIN,
    "test/unit/util/test_one.c": "int one(void);\nint main(void)\n{\n    return one() - 1;\n}\n",
}
COPIED = ("Makefile", "scripts/install-deps.sh", "scripts/make-venv.sh", "scripts/make-engines.sh",
          "scripts/run-unit.sh", "bench/deflate-blocks.c", "bench/simulate-reads.c", "bench/spindle.c",
          "test/engines/pom.xml", "test/engines/requirements.txt", "completions/generate.awk",
          "completions/options.tsv")
LIMIT_S = 60 * SLOW
# Settings that a make around these tests would hand down.
NOT_OURS = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "SAN", "WERROR", "V", "VALGRIND",
            "BUILD", "BIN", "PREFIX", "DESTDIR", "CFLAGS")
# Not for users.
INTERNAL = {"all", "test-programs", "fuzz-targets", "need-build", "need-unit",
            "need-spindle"}


class BuildTest(CliTest):
    """A test with the small tree at self.tree."""

    def setUp(self):
        super().setUp()
        self.tree = self.work / "tree"
        for name, text in SOURCES.items():
            path = self.tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in COPIED:
            (self.tree / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, self.tree / name)

    def make(self, *words):
        env = {key: value for key, value in environment(self.scratch).items()
               if key not in NOT_OURS}
        return subprocess.run(["make", *words], cwd=self.tree, env=env, check=False, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S)

    def lines(self, *words):
        """The sorted lines that a successful make prints; there are no messages."""
        done = self.make(*words)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return sorted(done.stdout.splitlines())


class ShortLines(BuildTest):
    def test_one_line_for_each_file(self):
        self.assertEqual(self.lines(), [
            "CC src/cli/samtools.c", "CC src/cli/samtools_rocksort.c", "CC src/util/one.c",
            "CC src/util/size.c", "LD samtools", "LD samtools-rocksort"])
        self.assertEqual(self.lines(), [])
        self.assertEqual(self.lines("check-unit"), [
            "1 unit test programs passed", "CC test/unit/util/test_one.c", "TEST util/test_one"])

    def test_verbose_build_prints_commands(self):
        printed = "\n".join(self.lines("V=1"))
        self.assertRegex(printed, r"(?m)^\S+ .* -c src/util/one\.c -o build/plain/src/util/one\.o$")
        self.assertNotRegex(printed, r"(?m)^(CC|LD) ")

    def test_output_of_a_failed_unit_test_appears(self):
        test = self.tree / "test/unit/util/test_one.c"
        for status in (0, 3):
            test.write_text("#include <stdio.h>\nint main(void)\n{\n"
                            f"    return puts(\"story\") < 0 ? 1 : {status};\n}}\n")
            done = self.make("check-unit")
            self.assertEqual(done.returncode == 0, status == 0, done.stderr)
            self.assertEqual("story" in done.stdout, status != 0)
        self.assertIn("FAIL util/test_one: exit status 3", done.stdout)

    def test_compiler_warning_appears_in_full_after_its_file(self):
        (self.tree / "src/util/size.c").write_text("int two(void)\n{\n    return 2;\n}\n")
        done = self.make()
        self.assertEqual(done.returncode, 0)
        self.assertIn("src/util/size.c:1:5: warning: no previous prototype", done.stderr)

    def test_dry_run_runs_no_test(self):
        (self.tree / "src/bam").mkdir()
        (self.tree / "src/bam/bgzf_engine.c").write_text("")
        done = self.make("-n", "check-cli", "differential", "fuzz-quick", "hostile")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, "-m pytest .*test/cli")
        self.assertFalse((self.tree / "build").exists())


class Jobs(BuildTest):
    def jobs(self, *words):
        found = re.search(r"^MAKEFLAGS = .*?(-j\d*)", self.make("-pn", *words).stdout, re.M)
        return found.group(1) if found else None

    def test_make_uses_all_cores(self):
        cores = subprocess.run(["nproc"], check=True, capture_output=True, text=True).stdout.strip()
        for words in ((), ("all",), ("all", "completions"), ("check",)):
            self.assertEqual(self.jobs(*words), f"-j{cores}", words)

    def test_number_of_jobs_is_taken(self):
        self.assertEqual(self.jobs("-j3"), "-j3")

    def test_clean_ends_before_all_begins(self):
        for words in (("clean", "all"), ("check-unit", "check-cli")):
            self.assertIsNone(self.jobs(*words), words)
        self.lines()
        self.lines("clean", "all")
        self.assertTrue((self.tree / "samtools").exists())


class Help(BuildTest):
    def test_help_names_each_target_and_nothing_else(self):
        text = "\n".join(self.lines("help"))
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        named = set(re.findall(r"^  make ([a-z0-9/-]+)", text, re.M))
        makefile = (self.tree / "Makefile").read_text().replace("\\\n", " ")
        targets = set(" ".join(re.findall(r"^(?:\.PHONY:|BENCHES =)(.*)", makefile, re.M)).split())
        self.assertEqual(named, targets - INTERNAL - {"$(BENCHES)"} | {"bench/spindle"})
        for word in ("V=1", "-jN", "HTSDIR=", "ROCKSDB_DIR=", "LIBDEFLATE_DIR=",
                     "ISAL_DIR=", "SAN=", "WERROR=", "VALGRIND="):
            self.assertIn(word, text)


class Missing(BuildTest):
    """One message says what is missing, before anything is compiled."""

    def check_message(self, words, *patterns):
        done = self.make("-j4", *words)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertEqual(done.stdout, "", words)
        self.assertEqual(list(self.tree.rglob("*.o")), [])
        message, rest = done.stderr.split("make: ***", 1)
        self.assertNotIn("make: ***", rest)
        for pattern in patterns:
            self.assertRegex(message, pattern, words)
            self.assertEqual(len(re.findall(pattern, message)), 1, message)
        self.assertRegex(message, r"(?m)^  .*(apt-get|conda|brew) install .*\w")

    def test_missing_libraries_are_named(self):
        self.check_message(["PKG_CONFIG=false"], "^cannot build: not found: .*snappy.*libxxhash")

    def test_missing_tools_are_named(self):
        self.check_message(["CC=no-such-cc"], "^cannot build: not found: C-compiler\n")
        self.check_message(["PKG_CONFIG=no-such-tool"], "^cannot build: not found: pkg-config\n")

    def test_wrong_directory_is_named(self):
        for variable, name, header in (("HTSDIR", "libhts", "htslib/sam.h"),
                                       ("ROCKSDB_DIR", "librocksdb", "rocksdb/c.h"),
                                       ("LIBDEFLATE_DIR", "libdeflate", "libdeflate.h"),
                                       ("ISAL_DIR", "libisal", "isa-l/igzip_lib.h")):
            self.check_message([f"{variable}=/no/such"],
                               f"^cannot build: {variable}=/no/such is not a directory\n")
            folder = self.work / variable
            folder.mkdir()
            self.check_message([f"{variable}={folder}"],
                               f"{variable}={folder} has no {header} and no {name}.so")
            (folder / "include" / header).parent.mkdir(parents=True)
            (folder / "include" / header).write_text("")
            self.check_message([f"{variable}={folder}"], f"{variable}={folder} has no {name}.so")

    def test_programs_can_be_built_at_once(self):
        self.check_message(["HTSDIR=/no/such", "ROCKSDB_DIR=/no/other", "CC=no-such-cc"],
                           "HTSDIR=/no/such is", "ROCKSDB_DIR=/no/other is", "C-compiler")

    def test_libraries_are_taken_from_a_right_directory(self):
        folder = self.work / "htslib"
        (folder / "htslib").mkdir(parents=True)
        (folder / "htslib/sam.h").write_text("")
        done = subprocess.run([os.environ.get("CC", "cc"), "-shared", "-o", folder / "libhts.so",
                               "-x", "c", "/dev/null"], check=False, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("LD samtools", self.lines(f"HTSDIR={folder}"))

    def test_deflating_libraries_are_found_left_out_or_taken_from_a_directory(self):
        source = self.tree / "src/bam/bgzf_engine.c"
        source.parent.mkdir(parents=True)
        source.write_text("int three(void);\nint three(void)\n{\n    return 3;\n}\n")
        line = "CC src/bam/bgzf_engine.c, with "
        self.assertIn(line + "no libdeflate, no ISA-L",
                      self.lines("LIBDEFLATE_DIR=no", "ISAL_DIR=no"))
        source.touch()
        usual, = [text for text in self.lines() if "bgzf_engine" in text]
        self.assertRegex(usual, line + r"(libdeflate \d\S*|no libdeflate), (ISA-L \d\S*|no ISA-L)$")
        places = {}
        for name, header, library in (("LIBDEFLATE_DIR", "libdeflate.h", "libdeflate"),
                                      ("ISAL_DIR", "isa-l/igzip_lib.h", "libisal")):
            folder = places[name] = self.work / name
            (folder / "include" / header).parent.mkdir(parents=True)
            (folder / "include" / header).write_text("")
            (folder / "lib").mkdir()
            done = subprocess.run([os.environ.get("CC", "cc"), "-shared", "-o",
                                   folder / f"lib/{library}.so", "-x", "c", "/dev/null"],
                                  check=False, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        words = [f"{name}={folder}" for name, folder in places.items()]
        source.touch()
        self.assertIn(f"{line}libdeflate in {places['LIBDEFLATE_DIR']}, "
                      f"ISA-L in {places['ISAL_DIR']}", self.lines(*words))
        source.touch()
        printed = "\n".join(self.lines("V=1", *words))
        for word in ("-DHAVE_LIBDEFLATE", "-DHAVE_ISAL", f"-L{places['ISAL_DIR']}/lib",
                     f"-rpath,{places['LIBDEFLATE_DIR']}:{places['LIBDEFLATE_DIR']}/lib"):
            self.assertIn(word, printed)
        # A test program that is linked without both.
        self.assertIn("LD build/plain/zlib-only/samtools-rocksort",
                      self.lines("build/plain/zlib-only/samtools-rocksort"))

    def installed(self, *unknown, set_="build"):
        """What install-deps.sh installs by an apt-get that does not know some packages, on a machine
        with nothing: status, names of packages, what it prints."""
        tools = self.work / "tools"
        tools.mkdir(exist_ok=True)
        log = tools / "log"
        log.write_text("")
        for name, text in (
                ("dpkg-query", "exit 1"), ("sudo", 'shift\nexec "$@"'), ("apt-get", f"""
[ "$1" = install ] || exit 0
shift
for word; do
    case " {' '.join(unknown)} " in *" $word "*) exit 100 ;; esac
done
for word; do
    case $word in -*) ;; *) echo "$word" >>{log} ;; esac
done""")):
            (tools / name).write_text(f"#!/bin/sh\n{text}\n")
            (tools / name).chmod(0o700)
        env = environment(self.scratch)
        env["PATH"] = f"{tools}:{env['PATH']}"
        done = subprocess.run(["sh", self.tree / "scripts/install-deps.sh", set_], check=False,
                              env=env, capture_output=True, text=True, timeout=LIMIT_S)
        return done.returncode, set(log.read_text().split()), done.stdout + done.stderr

    def test_packages_that_apt_does_not_know(self):
        """What a build can do without is left out, alone; what it needs is an error if it is not
        there otherwise."""
        status, everything, text = self.installed()
        self.assertEqual(status, 0, text)
        self.assertGreaterEqual(everything, {"gcc", "libhts-dev", "libdeflate-dev", "libisal-dev"})
        for unknown in ({"libisal-dev"}, {"libdeflate-dev", "libisal-dev"}):
            status, names, text = self.installed(*unknown)
            self.assertEqual((status, names), (0, everything - unknown), text)
            for package in unknown:
                self.assertIn(f"install-deps: going on without {package}\n", text)
        _, names, text = self.installed("libsnappy-dev", "libisal-dev")
        self.assertEqual(names, set())
        self.assertRegex(text, "install-deps: .*(apt-get could not install|all that is needed)")
