"""The `samtools` front end: it runs the upstream samtools unchanged, and never itself."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import generate
from harness import SAMTOOLS, SLOW, CliTest, environment

# Prints its arguments, copies its input for `cat`, and ends with status 37.
FAKE = r"""#!/bin/sh
printf 'fake %s\n' "$#"
for word in "$@"; do printf '<%s>\n' "$word"; done
echo 'fake on stderr' >&2
[ "$1" = cat ] && cat
exit 37
"""


class FrontEnd(CliTest):
    """PATH has directories of the test, and /bin, where the fake upstream finds cat."""

    def setUp(self):
        super().setUp()
        self.n_folders = 0
        self.upstream = self.folder(FAKE)

    def folder(self, script=None, name="samtools"):
        """A new directory, with the script in it if one is given."""
        self.n_folders += 1
        folder = self.work / f"bin{self.n_folders}"
        folder.mkdir()
        if script:
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)
        return folder

    def front(self, *args, path=(), program=SAMTOOLS, stdin=None, **env):
        """Runs the front end with this PATH (/bin and /usr/bin have no samtools of the test)."""
        env = environment(self.scratch, extra={"PATH": ":".join(str(one) for one in path), **env})
        return self.run_program([program, *args], stdin=stdin, env_only=env, limit_s=20 * SLOW)

    def assert_fake(self, result, *args):
        """The fake upstream ran once with these arguments."""
        want = f"fake {len(args)}\n" + "".join(f"<{word}>\n" for word in args)
        self.assertEqual(result.out.decode(), want, result.err)
        self.assertEqual(result.err, "fake on stderr\n")
        self.assertEqual(result.status, 37)

    def assert_no_upstream(self, result):
        """The run fails with a message that says what to install."""
        self.assertEqual(result.status, 1)
        self.assertEqual(result.out, b"")
        for word in ("apt", "conda", "brew"):
            self.assertIn(word, result.err)

    # Handing over

    def test_arguments_are_untouched(self):
        args = ["view", "-h", "", "a b", "*", "'\"$x\\", "--", "-", "ünï", "x\ny", "rocksort"]
        self.assert_fake(self.front(*args, path=[self.upstream]), *args)

    def test_streams_are_untouched(self):
        data = bytes(range(256)) * 1000
        result = self.front("cat", path=[self.upstream, "/bin"], stdin=data)
        self.assertEqual(result.out, b"fake 1\n<cat>\n" + data)

    def test_upstream_has_our_process_id(self):
        folder = self.folder("#!/bin/sh\necho $$\n")
        process = subprocess.Popen([SAMTOOLS, "view"], stdout=subprocess.PIPE,
                                   env=environment(self.scratch, extra={"PATH": str(folder)}))
        out, _ = process.communicate(timeout=20 * SLOW)
        self.assertEqual(int(out), process.pid)

    def test_upstream_inherits_no_open_file(self):
        folder = self.folder("#!/bin/sh\nls /proc/self/fd | wc -l\n")
        direct = self.run_program([folder / "samtools"])
        self.assertEqual(self.front("view", path=[folder, "/bin", "/usr/bin"]).out, direct.out)

    def test_long_path_is_searched(self):
        missing = [self.work / f"none{i}" for i in range(300)] + ["/" + "x" * 5000, self.upstream]
        self.assert_fake(self.front("view", path=missing), "view")

    def test_first_on_path_wins(self):
        other = self.folder("#!/bin/sh\nexit 5\n")
        self.assert_fake(self.front("view", path=[self.upstream, other]), "view")
        self.assertEqual(self.front("view", path=[other, self.upstream]).status, 5)

    def test_empty_element_is_the_working_directory(self):
        shutil.copy(self.upstream / "samtools", self.work / "samtools")
        for path in ("", ":", ":/nowhere", "/nowhere:", "/nowhere::/nowhere"):
            with self.subTest(path=path):
                self.assert_fake(self.front("view", path=[path]), "view")

    def test_what_cannot_run_is_passed_over(self):
        not_executable = self.folder(FAKE)
        (not_executable / "samtools").chmod(0o644)
        directory = self.folder()
        (directory / "samtools").mkdir()
        dangling = self.folder()
        (dangling / "samtools").symlink_to("/nowhere/samtools")
        no_interpreter = self.folder("#!/nowhere/interpreter\n")
        path = [not_executable, directory, dangling, no_interpreter, self.upstream]
        self.assert_fake(self.front("view", path=path), "view")

    def test_script_without_interpreter_line_runs(self):
        folder = self.folder(FAKE.replace("#!/bin/sh\n", ""))
        self.assert_fake(self.front("view", "x", path=[folder]), "view", "x")

    # Never to itself

    def ourselves(self, how):
        """A directory whose samtools is our front end, as a link, a copy or a wrapper."""
        folder = self.folder()
        target = folder / "samtools"
        if how == "symlink":
            target.symlink_to(SAMTOOLS)
        elif how == "symlink to symlink":
            (folder / "other").symlink_to(SAMTOOLS)
            target.symlink_to("other")
        elif how == "hard link":
            try:
                target.hardlink_to(SAMTOOLS)
            except OSError:  # the directory is on another file system
                shutil.copy(SAMTOOLS, target)
        elif how == "copy":
            shutil.copy(SAMTOOLS, target)
        else:
            target.write_text({
                "exec": f'#!/bin/sh\nexec "{SAMTOOLS}" "$@"\n',
                "child": f'#!/bin/sh\n"{SAMTOOLS}" "$@"\nexit $?\n',
                "by name": '#!/bin/sh\nexec samtools "$@"\n',
                "child by name": '#!/bin/sh\nsamtools "$@"\nexit $?\n',
                "of the copy": f'#!/bin/sh\nexec "{self.copy()}" "$@"\n',
            }[how])
            target.chmod(0o755)
        return folder

    def copy(self):
        """A copy of our front end outside PATH."""
        path = self.work / "copied-samtools"
        if not path.exists():
            shutil.copy(SAMTOOLS, path)
        return path

    WAYS = ("symlink", "symlink to symlink", "hard link", "copy", "exec", "child", "of the copy")
    # These wrappers run the first samtools of PATH. It must be our front end, or they would call
    # themselves.
    BY_NAME = ("by name", "child by name")

    def test_ourselves_on_path_are_passed_over(self):
        build = pathlib.Path(SAMTOOLS).parent
        for how in self.WAYS:
            folder = self.ourselves(how)
            with self.subTest(how, entered_by="our path"):
                self.assert_fake(self.front("view", "x", path=[folder, self.upstream]), "view", "x")
            with self.subTest(how, entered_by="that one"):
                result = self.front("view", "x", program=folder / "samtools",
                                    path=[folder, build, self.upstream])
                self.assert_fake(result, "view", "x")

    def test_all_of_ourselves_on_path_are_passed_over(self):
        folders = [self.ourselves(how) for how in self.WAYS]
        self.assert_fake(self.front("view", path=folders + [self.upstream]), "view")
        self.assert_fake(self.front("view", path=folders[::-1] + [self.upstream]), "view")
        self.assert_fake(self.front("view", path=(folders + folders) * 3 + [self.upstream]), "view")

    def test_wrappers_that_call_by_name_do_not_call_themselves(self):
        ours = self.ourselves("symlink")
        for how in self.BY_NAME:
            with self.subTest(how):
                wrapper = self.ourselves(how)
                self.assert_fake(self.front("view", path=[ours, wrapper, self.upstream]), "view")
                result = self.front("view", program=wrapper / "samtools",
                                    path=[ours, wrapper, self.upstream])
                self.assert_fake(result, "view")
                self.assert_no_upstream(self.front("view", path=[ours, wrapper]))

    def test_only_ourselves_on_path_is_no_upstream(self):
        for how in self.WAYS:
            with self.subTest(how):
                self.assert_no_upstream(self.front("view", path=[self.ourselves(how)]))
        self.assert_no_upstream(self.front("view", path=[self.ourselves(how) for how in self.WAYS]))

    def test_wrapper_that_changes_path_finds_its_upstream(self):
        """A wrapper of a module system: puts the directory of the upstream first on PATH and runs
        samtools by name."""
        wrapper = self.folder(f'#!/bin/sh\nPATH="{self.upstream}:$PATH" exec samtools "$@"\n')
        ours = self.ourselves("symlink")
        self.assert_fake(self.front("view", path=[ours, wrapper, "/bin"]), "view")

    # SAMTOOLS_UPSTREAM

    def test_named_upstream_is_run(self):
        other = self.folder("#!/bin/sh\nexit 5\n")
        named = str(self.upstream / "samtools")
        self.assert_fake(self.front("view", path=[other], SAMTOOLS_UPSTREAM=named), "view")
        self.assert_fake(self.front("view", path=[self.upstream], SAMTOOLS_UPSTREAM=""), "view")
        renamed = self.folder(FAKE, "samtools-1.99") / "samtools-1.99"
        self.assert_fake(self.front("view", path=[], SAMTOOLS_UPSTREAM=str(renamed)), "view")

    def test_named_upstream_that_cannot_run_is_an_error(self):
        plain = self.write("plain", "x")
        for name in (self.path("absent"), plain, str(self.work)):
            with self.subTest(name):
                result = self.front("view", path=[self.upstream], SAMTOOLS_UPSTREAM=name)
                self.assert_error(result, "SAMTOOLS_UPSTREAM", name)
                self.assertEqual(result.out, b"")

    def test_named_upstream_that_is_ourselves_is_refused(self):
        for how in self.WAYS:
            with self.subTest(how):
                folder = self.ourselves(how)
                result = self.front("view", path=[folder, self.upstream],
                                    SAMTOOLS_UPSTREAM=str(folder / "samtools"))
                self.assert_error(result, "SAMTOOLS_UPSTREAM")

    # Ours and theirs

    def test_version_begins_with_the_lines_of_the_upstream(self):
        for word in ("--version", "version"):
            result = self.front(word, path=[self.upstream])
            lines = result.out.decode().splitlines()
            self.assertEqual(lines[:2], ["fake 1", f"<{word}>"])
            self.assertEqual(len(lines), 3)
            self.assertRegex(lines[2], r"^rocksort \d+\.\d+")
            self.assertEqual(result.err, "fake on stderr\n")
            self.assertEqual(result.status, 37)

    def test_version_is_the_one_that_pipelines_look_for(self):
        """Modules of nf-core take what follows the last "samtools " of all lines joined."""
        folder = self.folder("#!/bin/sh\nprintf 'samtools 1.99\\nUsing htslib 1.98\\n'\n")
        for path, want in ((folder, "1.99"), ("/nowhere", "rocksort")):
            text = self.front("--version", path=[path]).out.decode()
            joined = re.sub(r"^.*samtools ", "", " ".join(text.split()))
            self.assertEqual(re.sub(r"Using.*$", "", joined).split()[0], want)

    def test_version_is_complete_if_children_are_ignored(self):
        folder = self.folder("#!/bin/sh\necho samtools 1.99\n")
        ignore = ("import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
                  "os.execv(sys.argv[1], sys.argv[1:])")
        result = self.run_program([sys.executable, "-c", ignore, SAMTOOLS, "--version"],
                                  env={"PATH": str(folder)})
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertEqual(len(result.out.splitlines()), 2)

    def test_version_of_an_upstream_that_dies_has_its_status(self):
        killer = self.folder("#!/bin/sh\necho samtools 1.99\nkill -TERM $$\n")
        result = self.front("--version", path=[killer])
        self.assertEqual(result.status, 128 + 15)
        self.assertEqual(result.out.decode().splitlines()[0], "samtools 1.99")

    def test_version_whose_reader_has_gone_is_no_error(self):
        """`samtools --version | head -1`, with pipefail: no error, although our line comes late."""
        gate = self.path("gate")
        os.mkfifo(gate)
        folder = self.folder(f"#!/bin/sh\necho samtools 1.99\nread line <{gate}\n")
        process = subprocess.Popen([SAMTOOLS, "--version"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE,
                                   env=environment(self.scratch, extra={"PATH": str(folder)}))
        self.assertEqual(process.stdout.readline(), b"samtools 1.99\n")
        process.stdout.close()
        with open(gate, "w", encoding="ascii") as opened:
            opened.write("go on\n")
        err = process.stderr.read()
        process.stderr.close()
        self.assertEqual((process.wait(20 * SLOW), err), (0, b""))

    def test_unknown_sorter_is_refused(self):
        for value in ("yes", "1", "Rocksort", "samtools-rocksort"):
            result = self.front("sort", "x", path=[self.upstream], SAMTOOLS_SORT=value)
            first, rest = result.err.split("\n", 1)
            self.assertRegex(first, f"^samtools: warning: SAMTOOLS_SORT='{value}' .*rocksort.*samtools")
            self.assert_fake(result._replace(err=rest), "sort", "x")
            copies = [self.ourselves("copy"), self.ourselves("child")]
            result = self.front("sort", "x", path=[*copies, self.upstream], SAMTOOLS_SORT=value)
            self.assertEqual(result.err.count("SAMTOOLS_SORT"), 1)
        for value in ("", "samtools"):
            self.assert_fake(self.front("sort", "x", path=[self.upstream], SAMTOOLS_SORT=value),
                             "sort", "x")
        self.assert_fake(self.front("view", path=[self.upstream], SAMTOOLS_SORT="yes"), "view")

    def test_version_only_is_for_scripts(self):
        self.assert_fake(self.front("--version-only", path=[self.upstream]), "--version-only")

    def test_usage_without_arguments_goes_to_standard_error(self):
        result = self.front(path=[self.upstream])
        self.assertEqual(result.out, b"fake 0\n")
        self.assertEqual(result.status, 37)
        self.assertIn("rocksort", result.err.split("fake on stderr")[0])

    def test_help_names_rocksort_first(self):
        for word in ("help", "--help"):
            result = self.front(word, path=[self.upstream])
            text = result.out.decode()
            self.assertIn("rocksort", text.split("fake 1")[0])
            self.assertTrue(text.endswith(f"fake 1\n<{word}>\n"))
        self.assert_fake(self.front("help", "view", path=[self.upstream]), "help", "view")

    def test_our_lines_come_once(self):
        copies = [self.ourselves("copy"), self.ourselves("child")]
        direct = self.front("--version", path=[self.upstream])
        self.assertEqual(self.front("--version", path=[*copies, self.upstream]), direct)

    def test_an_upstream_that_ends_with_127_is_one(self):
        """A wrapper whose exec fails. It was once reported as none, with status 0."""
        result = self.front("--version", path=[self.folder("#!/bin/sh\nexit 127\n")])
        self.assertEqual(result.status, 127)
        self.assertNotIn("no upstream", result.out.decode())

    def test_without_upstream_only_ours_works(self):
        self.assert_no_upstream(self.front("view", "x", path=["/nowhere"]))
        result = self.front("--version", path=["/nowhere"])
        self.assertEqual(result.status, 0, result.err)
        lines = result.out.decode().splitlines()
        self.assertRegex(lines[0], r"^rocksort \d")
        self.assertIn("no upstream", lines[1])
        result = self.front("--version", path=[], SAMTOOLS_UPSTREAM="/nowhere/samtools")
        self.assert_error(result, "SAMTOOLS_UPSTREAM", "/nowhere/samtools")
        self.assertRegex(result.out.decode(), r"^rocksort \d[^\n]*\n$")
        result = self.front(path=["/nowhere"])
        self.assertEqual(result.status, 1)
        self.assertIn("rocksort", result.err)
        self.assertIn("apt", result.err)
        for word in ("help", "--help"):
            result = self.front(word, path=["/nowhere"])
            self.assertEqual(result.status, 1)
            self.assertIn("apt", result.err)
        sam = generate.odd(50).encode()
        result = self.front("rocksort", "-O", "sam", path=["/nowhere"], stdin=sam)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(len(result.out.decode("latin-1").splitlines()), len(sam.splitlines()) + 2)

    def test_full_output_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([SAMTOOLS, "--version"], stdout=full, stderr=subprocess.PIPE,
                                  env=environment(self.scratch, extra={"PATH": "/nowhere"}),
                                  timeout=20 * SLOW, check=False)
        self.assertEqual(done.returncode, 1)
