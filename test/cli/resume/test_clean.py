"""--clean DIR: lists the checkpoints that dead sorts left, and removes them with --yes."""

import fcntl
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import bamfile
import generate
from harness import SAMTOOLS, SPILL_BUDGET, wait_for
from checkpoints import APPEAR_LIMIT_S, KilledTest, ResumeTest


class Clean(ResumeTest):
    """What --clean lists and removes."""

    def test_clean_says_that_there_is_nothing(self):
        self.assertIn("no temporary data", self.clean(self.where))
        self.assertIn("no temporary data", self.clean(self.where, "--yes"))

    def test_clean_lists_and_removes_dead_checkpoints_alone(self):
        sam = generate.odd(9000, seed=96).encode()
        checkpoint = self.fails_in_merge(stdin=sam)
        foreign = self.where / "rocksort.1.abcdef"
        foreign.mkdir(mode=0o700)
        (foreign / "mine").write_text("x")
        os.symlink(checkpoint, self.where / "rocksort.2.abcdef")
        process = self.start("-T", self.where, budget=SPILL_BUDGET)
        writer = self.feed(process, sam)
        busy, = wait_for(lambda: [path for path in self.checkpoints()
                                  if path not in (checkpoint, str(foreign), str(self.where /
                                                                                "rocksort.2.abcdef"))
                                  and os.path.exists(path + "/STORE")], APPEAR_LIMIT_S,
                         "a checkpoint")
        for args in ((), ("--yes",)):
            lines = self.clean(self.where, *args).splitlines()
            if not args:            # the line after that of the checkpoint, wherever it is listed
                at = next(i for i, line in enumerate(lines) if checkpoint in line)
                self.assertEqual(lines.pop(at + 1).strip(), "sort to '/dev/full'; to finish it: "
                                 f"samtools rocksort --resume {checkpoint}")
            self.assertEqual(len(lines), 2, lines)
            state = {line.split()[-1] if "removed" not in line else line.split()[-2].rstrip(","):
                     line.split()[0] for line in lines}
            self.assertEqual(state, {checkpoint: "complete", busy: "in"}, lines)
            self.assertIn("MB", next(line for line in lines if checkpoint in line))
            self.assertEqual(os.path.exists(checkpoint), not args)
        self.assertTrue(os.path.exists(busy))
        self.assertTrue((foreign / "mine").exists())
        self.assertTrue(os.path.islink(self.where / "rocksort.2.abcdef"))
        process.kill()
        process.wait()
        writer.join(5)
        self.assertRegex(self.clean(busy), r"\Apartial .*\n *sort to 'standard output'; to write what "
                         rf"there is: samtools rocksort --resume {busy} --partial -o FILE\n\Z")
        self.assertIn("removed", self.clean(busy, "--yes"))
        self.assertFalse(os.path.exists(busy))

    def test_yes_is_no_directory_wherever_it_stands(self):
        for words in (["--clean", "--yes", self.where], ["--yes", "--clean", self.where],
                      ["--yes", f"--clean={self.where}"], [self.where, "--clean", "--yes"]):
            checkpoint = self.fails_in_merge(stdin=generate.odd(9000, seed=96).encode())
            result = self.sort_ok(*words)
            self.assertIn("removed", result.out.decode())
            self.assertFalse(os.path.exists(checkpoint))

    def test_checkpoint_without_its_state_file_is_removed(self):
        sam = generate.odd(9000, seed=96).encode()
        checkpoint = self.fails_in_merge(stdin=sam)
        os.unlink(os.path.join(checkpoint, "STORE"))
        self.assertIn("useless", self.clean(self.where))
        self.clean(self.where, "--yes")
        self.assertEqual(self.checkpoints(), [])

    def test_wrong_words_and_places_are_errors(self):
        result = self.rocksort("--clean", self.path("nothing"))
        self.assert_error(result, "nothing")
        for words in ([self.where, self.path("more")], [], ["--yes"],
                      [f"--clean={self.where}", self.where]):
            self.assert_error(self.rocksort("--clean", *words), "--clean")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([SAMTOOLS, "rocksort", "--clean", self.where], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


class NamesAndLocks(KilledTest):
    """Names of checkpoints, and the locks that show whether they are in use."""

    def test_nothing_is_removed_where_locks_do_not_work(self):
        """On a file system without locks --clean refuses to remove checkpoints. It once removed one
        that was in use there."""
        source = self.source()
        checkpoint = self.fails_in_merge(source)
        for errno in ("ENOLCK", "ENOTSUP", "EINVAL"):
            with self.subTest(errno=errno):
                env = self.faulty(f"flock:1+:{errno}")
                result = self.rocksort("--clean", self.where, "--yes", env=env, clean=False)
                self.assert_error(result, checkpoint, "locks")
                self.assertIn(f"{checkpoint}\n", result.out.decode())
                self.clean(self.where, env=env)
        want = self.sort_bam("--no-PG", source)
        self.resume(checkpoint, "-o", self.path("out.bam"), env=self.faulty("flock:1+:ENOLCK"))
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_directory_name_may_end_with_slashes(self):
        checkpoint = self.fails_in_merge(self.source())
        self.assertIn(checkpoint, self.clean(checkpoint + "/"))
        self.assertIn("removed", self.clean(checkpoint + "//", "--yes"))
        self.assertEqual(self.checkpoints(), [])

    def test_name_with_control_characters(self):
        checkpoint = self.fails_in_merge(self.source())
        os.rename(checkpoint, self.where / ("a\nb\033[31m" + "c.rocksort.1.abcdef"))
        out = self.clean(self.where)
        self.assertEqual(out.count("\n"), 2)
        self.assertNotIn("\033", out)
        out = self.clean(self.where, "--yes")
        self.assertRegex(out, "c.rocksort.1.abcdef, removed\n")
        self.assertEqual(self.checkpoints(), [])
        result = self.rocksort("--clean", f"{self.where}/a\nb")
        self.assertEqual(result.err.count("\n"), 1)

    def test_locked_by_another_clean(self):
        checkpoint = self.fails_in_merge(stdin=generate.odd(9000, seed=95).encode())
        with open(os.path.join(checkpoint, "LOCK"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            process = self.start("--clean", self.where)
            time.sleep(0.1)
            fcntl.flock(lock, fcntl.LOCK_UN)
        listed, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertRegex(listed.decode(), r"\Acomplete .*\n.*sort to .*\n\Z")


class Owners(KilledTest):
    """Locks that do not work for the sort, but do for --clean and --resume: on NFS that one host
    mounts with nolock, for example. The lock then shows nothing, and the file LOCK says who works
    there."""

    ELSEWHERE = ("rocksort-owner 1\nhost n17\nboot 0\nprocesses pid:[1]\nprocess 4711\n"
                 "lock none\n")

    def test_running_sort_without_a_lock(self):
        """--clean --yes once removed the files of the running sort."""
        process = self.start("-T", self.where, "-o", self.path("out.bam"), "-",
                             budget=SPILL_BUDGET, env=self.faulty("flock:1+:ENOLCK"))
        sam = generate.odd(9000, seed=96).encode()
        self.feed(process, sam)
        busy, = wait_for(lambda: [path for path in self.checkpoints()
                                  if os.path.exists(path + "/STORE")], APPEAR_LIMIT_S,
                         "a checkpoint")
        process.send_signal(signal.SIGSTOP)         # it adds no run while its files are compared
        for words in ([], ["--yes"]):
            out = self.clean(self.where, *words)
            self.assertRegex(out, rf"\Ain use +{busy}\n\Z")
        self.refused(busy, busy, "in use")
        self.assertTrue(os.path.exists(busy + "/STORE"))
        process.kill()
        process.wait()
        self.assertIn("removed", self.clean(self.where, "--yes"))
        self.assertEqual(self.checkpoints(), [])

    def test_running_output_without_a_lock(self):
        """The same for the output of a sort in memory, which has no other file."""
        process = self.start("-o", self.path("out.bam"), self.source(),
                             env=self.faulty("flock:1+:ENOLCK,rename:1:600000ms:out.bam"))
        left, = wait_for(lambda: sorted(str(path) for path in self.work.glob("*.tmp")),
                         APPEAR_LIMIT_S, "a temporary output")
        for words in ([], ["--yes"]):
            self.assertRegex(self.clean(self.work, *words), rf"\Ain use +{re.escape(left)}\n\Z")
        self.assertTrue(os.path.exists(left))
        process.kill()
        process.wait()
        self.assertIn("removed", self.clean(self.work, "--yes"))
        self.assertFalse(os.path.exists(left))

    def test_resumed_sort_without_a_lock(self):
        checkpoint = self.cut_load(self.source(20000))
        fifo = self.path("fifo.bam")
        os.mkfifo(fifo)
        process = self.start("--resume", checkpoint, "-o", fifo, budget=SPILL_BUDGET,
                             env=self.faulty("flock:1+:ENOLCK"))
        with open(fifo, "rb") as pipe:
            self.assertTrue(pipe.read(100))
            self.assertIn("in use", self.clean("--yes", self.where))
            self.refused(checkpoint, checkpoint, "in use")
            process.kill()
            process.wait()
        self.resume(checkpoint, "-o", self.path("out.bam"))

    def test_checkpoint_of_another_host_is_not_removed(self):
        """A sort on another host that had no lock: nobody here can know whether it runs."""
        source = self.source(20000)
        want = self.sort_bam("--no-PG", source)
        checkpoint = self.cut_load(source)
        with open(checkpoint + "/LOCK", "r+", encoding="ascii") as lock:
            self.assertRegex(lock.read(), r"\Arocksort-owner 1\n(.+\n)+process \d+\nlock all\n\Z")
            lock.seek(0)
            lock.truncate()
            lock.write(self.ELSEWHERE)
        out = self.clean(self.where)
        self.assertRegex(out, rf"\Ain use\? +{checkpoint}\n +it may be in use on host 'n17'; .*\n\Z")
        result = self.rocksort("--clean", "--yes", self.where, clean=False)
        self.assert_error(result, checkpoint, "'n17'")
        self.refused(checkpoint, checkpoint, "'n17'", "LOCK")
        said = self.sort_ok("-T", self.where, "-o", self.path("o.bam"), source, clean=False,
                            budget=SPILL_BUDGET)
        self.assertNotIn("found an interrupted", said.err)
        # What the message says can be done.
        os.truncate(checkpoint + "/LOCK", 0)
        self.assertIn("resumable", self.clean(self.where))
        self.resume(checkpoint)
        self.assert_same_bam(bamfile.read(self.path("out.bam")), want)

    def test_checkpoint_from_before_a_restart_is_said_so(self):
        """The host of the sort is called like this one, but its kernel was another one. Once the
        message said to go to the host where the user already was."""
        checkpoint = self.cut_load(self.source(20000))
        with open(checkpoint + "/LOCK", "w", encoding="ascii") as lock:
            lock.write(self.ELSEWHERE.replace("n17", socket.gethostname()))
        out = self.clean(self.where)
        self.assertRegex(out, r"\Ain use\? .*\n +it is from before '.*' was restarted, .*\n\Z")
        self.refused(checkpoint, checkpoint, "restarted", "LOCK")

    def test_lock_file_cannot_be_written(self):
        """Where all hosts see the lock, it alone is enough: the disk may be full."""
        source = self.source(20000)
        checkpoint = self.killed("pwrite:1+:ENOSPC:/LOCK,link:4:kill:.sst", source, "-o",
                                 self.path("out.bam"))
        self.assertEqual(os.path.getsize(checkpoint + "/LOCK"), 0)
        self.assertIn("resumable", self.clean(self.where))
        result = self.rocksort("-T", self.where, "-o", self.path("o.bam"), source,
                               budget=SPILL_BUDGET,
                               env=self.faulty("pwrite:1+:ENOSPC:/LOCK,flock:1+:ENOLCK"))
        self.assert_error(result, str(self.where), "No space left", "-T")
        self.resume(checkpoint, env=self.faulty("pwrite:1+:ENOSPC:/LOCK"))


class Outputs(KilledTest):
    """Outputs that killed sorts have not finished."""

    def clean(self, *args, **how):
        return super().clean(*args, **how).splitlines()

    def unfinished(self):
        """The temporary files of outputs and indexes in work."""
        return sorted(str(path) for path in self.work.glob("*.tmp"))

    def killed_in_memory(self, name="out.bam", *options):
        """Kills a sort in memory when its output is complete and has no name yet. Returns the
        temporary files."""
        result = self.rocksort(*options, "-o", self.path(name), self.source(), clean=False,
                               env=self.faulty(f"rename:1:kill:{name}"))
        self.assertEqual(result.status, -signal.SIGKILL, result.err)
        return self.unfinished()

    def test_output_of_a_sort_in_memory_is_found(self):
        left, = self.killed_in_memory()
        self.write("other.rocksort.1.000000000.tmp.bam", "not ours")
        os.mkdir(self.path("directory.rocksort.1.000000000.tmp"))
        self.write("victim", "not ours")
        os.symlink("victim", self.path("link.rocksort.1.000000000.tmp"))
        before = sorted(os.listdir(self.work))
        for place in (self.work, self.path("out.bam"), left, "out.bam", "."):
            line, = self.clean(place, cwd=self.work)
            self.assertRegex(line, r"\Auseless .* MB  .*out\.bam\.rocksort\.\d+\.\d{9}\.tmp\Z")
        self.assertEqual(sorted(os.listdir(self.work)), before)
        self.assertIn("no temporary data", self.clean(self.path("in.bam"))[0])
        self.assert_error(self.rocksort("--clean", self.path("out.ba")), "out.ba")
        line, = self.clean("--yes", self.path("out.bam"))
        self.assertTrue(line.endswith(f"{left}, removed"), line)
        before.remove(os.path.basename(left))
        self.assertEqual(sorted(os.listdir(self.work)), before)

    def test_index_that_was_being_written_goes_with_its_output(self):
        """An index that htslib was writing belongs to its output, which may be named by a link."""
        os.symlink("real.cram", self.path("link.cram"))
        result = self.rocksort("-O", "cram,no_ref=1", "--write-index", "-o", self.path("link.cram"),
                               self.source(), clean=False,
                               env=self.faulty("rename:1:kill:real.cram"))
        self.assertEqual(result.status, -signal.SIGKILL, result.err)
        left = self.unfinished()
        self.assertEqual(len(left), 2)
        self.write("real.cram", "")
        line, = self.clean("--yes", self.path("link.cram"))     # their journal
        self.assertRegex(line, r"\Auseless .*\.journal, removed\Z")
        self.assertEqual(self.unfinished(), [])

    def test_output_in_use_is_not_removed(self):
        source = self.source()
        process = self.start("-o", self.path("out.bam"), source,
                             env=self.faulty("rename:1:3000ms:out.bam"))
        left = wait_for(self.unfinished, APPEAR_LIMIT_S, "a temporary output")
        for words in ([], ["--yes"]):
            line, = self.clean(self.work, *words)
            self.assertTrue(line.startswith("in use") and line.endswith(left[0]), line)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertTrue(os.path.exists(self.path("out.bam")))
        self.assertEqual(self.unfinished(), [])

    def test_nothing_is_removed_without_locks(self):
        left, = self.killed_in_memory()
        env = self.faulty("flock:1+:ENOLCK")
        result = self.run_program([SAMTOOLS, "rocksort", "--clean", "--yes", self.work], env=env)
        self.assert_error(result, left, "locks")
        self.assertTrue(os.path.exists(left))
        # A sort on such a file system works as on others.
        self.sort_ok("-o", self.path("o.bam"), self.source(), env=env)

    def test_looked_at_while_it_is_made(self):
        """A file that another process locks for a moment, just when it is made, or removes."""
        source = self.source()
        result = self.sort_ok("-o", self.path("o.bam"), source, env=self.faulty("flock:1:EAGAIN"))
        self.assertEqual(self.unfinished(), [])
        result = self.rocksort("-o", self.path("o.bam"), source, env=self.faulty("flock:1+:EIO"))
        self.assert_error(result, "o.bam")
        self.assertEqual(self.unfinished(), [])

    def test_output_of_a_checkpoint_is_listed_with_it(self):
        source = self.source()
        out = self.path("out.bam")
        result = self.rocksort("--no-PG", "-T", self.where, "-o", out, source, clean=False,
                               budget=SPILL_BUDGET, env=self.faulty("rename:1:kill:/out.bam"))
        self.assertEqual(result.status, -signal.SIGKILL, result.err)
        checkpoint, = self.checkpoints()
        left, = self.unfinished()
        lines = self.clean(self.where)
        self.assertRegex(lines[0], rf"\A(complete|resumable) .* {re.escape(checkpoint)}\Z")
        self.assertEqual(lines[1].strip(), f"sort to '{out}'; to finish it: samtools rocksort "
                         f"--resume {checkpoint}")
        self.assertRegex(lines[2], rf"\Auseless .* {re.escape(left)}\Z")
        self.assertEqual(len(lines), 3)
        # What is beside it is listed once.
        shutil.move(checkpoint, self.path("out.bam.rocksort.1.abcdef"))
        self.assertEqual(len(self.clean(self.work)), 3)
        self.assertEqual(len(self.clean(out)), 3)
        lines = self.clean("--yes", self.path("out.bam.rocksort.1.abcdef"))
        self.assertEqual(len([line for line in lines if line.endswith(", removed")]), 2)
        self.assertEqual((self.checkpoints(self.work), self.unfinished()), ([], []))

    def test_clean_of_an_output_says_where_its_data_may_be(self):
        source = self.source()
        out = self.path("out.bam")
        self.killed("rename:1:kill:/out.bam", "-o", out, source)
        os.unlink(self.unfinished()[0])
        self.assert_error(self.rocksort("--clean", out, clean=False), out, "-T put", "give that")
        self.write("out.bam", "")
        line, = self.clean(out)
        self.assertRegex(line, "no temporary data .*-T.* give that directory")
        # The checkpoint names the output without the index.
        self.killed_with_index(source)

    def killed_with_index(self, source):
        """Kills a sort whose index has a name of its own, and lists what is left."""
        for path in self.checkpoints():
            shutil.rmtree(path)
        out = self.path("o.bam")
        self.killed("rename:1:kill:/o.bam", "--write-index", "-o", f"{out}##idx##{out}.bai", source)
        self.assertRegex(self.clean(self.where)[3], rf"\A +sort to '{re.escape(out)}'; to finish")

    def test_killed_between_output_and_index(self):
        """The new output has its name, and its index has not: the checkpoint is offered, and gives
        both."""
        source = self.source()
        out = self.path("out.bam")
        self.write("out.bam", "old")
        self.write("out.bam.csi", "old")
        self.killed("rename:3:kill:/out.bam", "--write-index", "-o", out, source)
        self.assertFalse(os.path.exists(out + ".csi"))
        self.assertGreater(os.path.getsize(out), 3)
        lines = self.clean(self.where)
        self.assertRegex(lines[1], "unfinished publishing of .*: 1 of 2 files have their names")
        self.assertIn(f"sort to '{out}'; to finish it", lines[3])
        checkpoint, = self.checkpoints()
        self.resume(checkpoint)
        with open(out + ".csi", "rb") as index:
            self.assertEqual(index.read(2), b"\x1f\x8b")
        self.assertEqual(self.unfinished(), [])

    def test_command_can_be_pasted(self):
        place = self.work / "it's a $HOME"
        place.mkdir()
        source = self.source()
        out = self.path("out put.bam")
        result = self.rocksort("--no-PG", "-T", place, "-o", out, source, clean=False,
                               budget=SPILL_BUDGET, env=self.faulty("rename:1:kill:/out put.bam"))
        self.assertEqual(result.status, -signal.SIGKILL, result.err)
        command = self.clean(place)[1].split(": ", 1)[1]
        done = self.run_program(["bash", "-c", command.replace("samtools", SAMTOOLS, 1)])
        self.assertEqual(done.status, 0, done.err)
        want = self.sort_bam("--no-PG", source)
        self.assert_same_bam(bamfile.read(out), want)
        self.assertEqual((self.checkpoints(place), self.unfinished()), ([], []))


class Names(KilledTest):
    """Sorts that end while several files get their names: --resume, --clean and the sort itself make
    all of them get theirs, byte for byte as without the disturbance."""

    SETS = {
        "also": ["--also", "b.sam"],
        "index": ["--write-index"],
        "reports": ["--also", "b.sam.gz", "--write-index", "--fixmate",
                    "--markdup=-f marked", "--flagstat", "flags", "--idxstats", "idx",
                    "--coverage", "cover", "--report", "stats"],
        "apart": ["--also", "also/b.sam", "--flagstat", "counts/flags"],
        "groups": ["--split-by", "contig", "--flagstat", "flags"],
        "directories": ["--split-by", "contig"],
    }
    OUTPUTS = {"groups": "%.bam", "directories": "contig=%/a.bam"}

    def setUp(self):
        super().setUp()
        self.bam = self.source()
        self.out = self.work / "out"
        self.empty()

    def words(self, kind):
        return [*self.SETS.get(kind, []), "--no-PG", "-o", self.OUTPUTS.get(kind, "a.bam")]

    def sort(self, kind, *, fault="", budget=None, source=None):
        """Runs a sort with a fault at a name below out."""
        place = ["-T", self.where] if budget else []
        return self.rocksort(*self.words(kind), *place, source or self.bam, clean=False,
                             cwd=self.out, budget=budget,
                             env=self.faulty(fault) if fault else None)

    def files(self):
        """{name: checksum of the content} of all files below out. The ends of BGZF blocks, and so
        the index, depend on timing; statistics have times."""
        found = {}
        for path in self.out.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                name = str(path.relative_to(self.out))
                if name == "stats":
                    data = json.dumps(json.loads(data)["status"]).encode()
                elif name.endswith(".csi"):
                    data = data[:2]
                elif data[:2] == b"\x1f\x8b":
                    data = gzip.decompress(data)
                found[name] = hashlib.sha256(data).hexdigest()
        return found

    def empty(self):
        shutil.rmtree(self.out, ignore_errors=True)
        for place in (self.out, self.out / "also", self.out / "counts"):
            place.mkdir()

    def wanted(self, kind, budget=None, **how):
        result = self.sort(kind, budget=budget, **how)
        self.assertEqual(result.status, 0, result.err)
        want = self.files()
        self.empty()
        return want

    def faults(self, kind, want, action):
        """Faults at some of the names, the first and the last of them."""
        call = "renameat2" if kind in self.OUTPUTS else "rename"
        n = len([name for name in want if name != "flags" or call == "rename"])
        part = "" if call == "renameat2" else ":/out/"
        return [f"{call}:{number}:{action}{part}" for number in sorted({1, 2, (n + 1) // 2, n})]

    def each_kill(self, budget):
        for kind in self.SETS:
            want = self.wanted(kind, budget)
            self.assertGreater(len(want), 1)
            # The journal of groups goes with their directory, after the checkpoint, whose file is
            # the third of its name that is removed. Once --resume found groups in its way then.
            last = "unlink:1:kill:.journal" if kind not in self.OUTPUTS else (
                "unlinkat:3:kill:STORE" if budget else "unlinkat:1:kill:NAMES")
            for fault in [*self.faults(kind, want, "kill"), last]:
                with self.subTest(kind=kind, fault=fault, budget=budget):
                    result = self.sort(kind, fault=fault, budget=budget)
                    self.assertEqual(result.status, -signal.SIGKILL, result.err)
                    yield want
                    self.assertEqual(self.files(), want)
                    self.assertEqual(self.checkpoints(self.out, self.where), [])
                    self.empty()

    def test_killed_without_a_checkpoint(self):
        for _ in self.each_kill(None):
            before = self.files()
            listed = self.sort_ok("--clean", self.out, clean=False).out.decode()
            self.assertRegex(listed, r"unfinished publishing of '[^']*': \d+ of \d+ files have")
            self.assertEqual(self.files(), before)
            self.sort_ok("--clean", "--yes", self.out, clean=False)

    def test_resume_gives_the_missing_names(self):
        for _ in self.each_kill(SPILL_BUDGET):
            checkpoint, = self.checkpoints()
            self.assertRegex(self.resume(checkpoint).err, "was complete but for names")

    def test_clean_of_the_checkpoint_keeps_complete_results(self):
        for _ in self.each_kill(SPILL_BUDGET):
            self.sort_ok("--clean", "--yes", self.where, clean=False)

    def test_signal_lets_all_files_get_their_names(self):
        """SIGTERM lets all files get their names, and nothing is offered to be resumed."""
        for kind in self.SETS:
            for budget in (None, SPILL_BUDGET):
                want = self.wanted(kind, budget)
                for fault in self.faults(kind, want, "term"):
                    with self.subTest(kind=kind, fault=fault, budget=budget):
                        result = self.sort(kind, fault=fault, budget=budget)
                        self.assertEqual(result.status, -signal.SIGTERM)
                        self.assertIn("is complete", result.err)
                        self.assertNotIn("--resume", result.err)
                        self.assertEqual(self.files(), want)
                        self.assertEqual(self.checkpoints(self.out, self.where), [])
                        self.empty()

    def test_failure_is_taken_back(self):
        """If an output cannot get its name and no older file is lost, none has a name."""
        for kind, fault in (("also", "rename:2:EIO:/out/"), ("reports", "rename:2:ENOSPC:/out/"),
                            ("groups", "renameat2:5:ENOSPC")):
            want = self.wanted(kind, SPILL_BUDGET)
            result = self.sort(kind, fault=fault, budget=SPILL_BUDGET)
            self.assert_error(result, "got its name")
            self.assertEqual(set(self.files()), {"stats"} & set(want))  # they say that it failed
            checkpoint, = self.checkpoints()
            self.resume(checkpoint)
            self.assertEqual(dict(self.files(), stats=None), dict(want, stats=None))
            self.empty()

    def test_failure_after_an_old_file_is_gone(self):
        """What cannot be taken back stays as it is, and the message says how to finish."""
        want = self.wanted("also")
        for budget in (None, SPILL_BUDGET):
            (self.out / "b.sam").write_text("old")
            result = self.sort("also", fault="rename:2:EIO:/out/", budget=budget)
            self.assert_error(result, "to finish: samtools rocksort --clean --yes")
            command = re.search("samtools rocksort --clean --yes .*", result.err).group()
            done = self.run_program(["bash", "-c", command.replace("samtools", SAMTOOLS, 1)])
            self.assertEqual(done.status, 0, done.err)
            self.assertEqual(self.files(), want)
            self.empty()

    def test_files_of_a_later_sort_are_not_replaced(self):
        """What a later sort has written is not replaced by the files of a killed one."""
        other = self.source(500, name="other.bam")
        for kind, number in (("also", 1), ("also", 2), ("index", 1), ("index", 2)):
            want = self.wanted(kind, source=other)
            result = self.sort(kind, fault=f"rename:{number}:kill:/out/")
            self.assertEqual(result.status, -signal.SIGKILL)
            self.assertEqual(self.sort(kind, source=other).status, 0)
            listed = self.sort_ok("--clean", self.out, "--yes", clean=False).out.decode()
            self.assertIn("useless", listed)
            self.assertEqual(self.files(), want)
            self.empty()

    def test_file_in_the_way(self):
        want = self.wanted("groups", SPILL_BUDGET)
        self.sort("groups", fault="renameat2:3:kill", budget=SPILL_BUDGET)
        checkpoint, = self.checkpoints()
        name, = (self.out / name for name in want if name == "unplaced.bam")
        name.write_text("mine")
        for words in (["--resume", checkpoint], ["--clean", "--yes", self.out],
                      ["--clean", "--yes", self.where]):
            self.assert_error(self.rocksort(*words, clean=False), name, "in the way")
            self.assertEqual(name.read_text(), "mine")
        name.unlink()
        self.resume(checkpoint)
        self.assertEqual(self.files(), want)

    def test_files_that_were_removed_are_made_again(self):
        want = self.wanted("groups", SPILL_BUDGET)
        for words in (["--resume"], ["--clean", "--yes"]):
            self.sort("groups", fault="renameat2:2:kill", budget=SPILL_BUDGET)
            for path in self.out.glob("*.bam*"):
                path.unlink()
            checkpoint, = self.checkpoints()
            self.sort_ok(*words, checkpoint, clean=False)
            self.sort_ok("--clean", "--yes", self.out, clean=False)
            self.assertEqual(self.files(), want if words == ["--resume"] else {})
            self.empty()

    def test_sort_to_the_same_groups_names_what_finishes_them(self):
        want = self.wanted("groups")
        self.sort("groups", fault="renameat2:3:kill")
        result = self.sort("groups")
        self.assert_error(result, "its set is not finished")
        command = re.search("--clean --yes (.*)", result.err).group(1)
        self.sort_ok("--clean", "--yes", command, clean=False, cwd=self.out)
        self.assertEqual(self.files(), want)

    def test_journal_is_found_by_the_name_of_the_second_output(self):
        want = self.wanted("also")
        self.sort("also", fault="rename:1:kill:/out/")
        self.sort_ok("--clean", "--yes", "b.sam", cwd=self.out, clean=False)
        self.assertEqual(self.files(), want)

    def test_clean_of_one_directory_finishes_files_of_all(self):
        for budget in (None, SPILL_BUDGET):
            want = self.wanted("apart", budget)
            for number in (1, 2, 3):
                for place in ("also", "counts"):
                    self.sort("apart", fault=f"rename:{number}:kill:/out/", budget=budget)
                    listed = self.sort_ok("--clean", self.out / place, clean=False).out.decode()
                    self.assertIn(f"{number - 1} of 3 files have their names", listed)
                    self.sort_ok("--clean", "--yes", self.out / place, clean=False)
                    self.assertEqual(self.files(), want)
                    self.sort_ok("--clean", "--yes", self.where, clean=False)
                    self.assertEqual(self.files(), want)
                    self.empty()

    def test_resumed_with_another_output(self):
        """The first output gets its names, and the sort goes on for the other."""
        want = self.wanted("also", SPILL_BUDGET)
        self.sort("also", fault="rename:2:kill:/out/", budget=SPILL_BUDGET)
        checkpoint, = self.checkpoints()
        self.resume(checkpoint, "--no-PG", "-o", self.path("c.bam"))
        files = self.files()
        self.assertEqual(files["a.bam"], want["a.bam"])
        self.assertTrue(bamfile.looks_complete(self.path("c.bam")))

    def killed_while_naming(self, *words):
        """Returns the checkpoint of a sort of which one file lacks its name."""
        result = self.rocksort("--no-PG", "-T", self.where, "--also", "b.sam", "-o", "a.bam",
                               *words, self.bam, clean=False, cwd=self.out, budget=SPILL_BUDGET,
                               env=self.faulty("rename:2:kill:/out/"))
        self.assertEqual(result.status, -signal.SIGKILL, result.err)
        checkpoint, = self.checkpoints()
        return checkpoint

    def test_resumed_with_other_options_writes_the_output_in_the_other_way(self):
        out = self.out / "a.bam"
        for words, start, name in ((["-O", "sam"], b"@HD", "a.bam"), (["-u"], b"\x1f\x8b", "a.bam"),
                                   (["--write-index"], b"\x1f\x8b", "a.bam.csi"),
                                   (["--output-fmt-option", "level=0"], b"\x1f\x8b", "a.bam"),
                                   (["--write-index", "-o", f"{out}##idx##{out}.bai"],
                                    b"BAI\1", "a.bam.bai")):
            with self.subTest(words=words):
                checkpoint = self.killed_while_naming()
                self.resume(checkpoint, *words)
                data = (self.out / name).read_bytes()
                self.assertEqual(data[:len(start)], start)
                if words[0] in ("-u", "--output-fmt-option"):
                    self.assertGreater(len(data), len(gzip.decompress(data)))
                self.assertEqual(self.checkpoints(self.out, self.where), [])
                self.empty()

    def test_resumed_to_standard_output_writes_the_records_there(self):
        checkpoint = self.killed_while_naming()
        result = self.rocksort("--resume", checkpoint, "-o", "-")
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(gzip.decompress(result.out),
                         gzip.decompress((self.out / "a.bam").read_bytes()))

    def test_resumed_with_the_same_options_sorts_nothing_again(self):
        words = ["-l", "1", "-O", "bam", "--write-index", "--output-fmt-option", "nthreads=1",
                 "--flagstat", "flags"]
        checkpoint = self.killed_while_naming(*words)
        before = os.stat(self.out / "b.sam").st_ino
        words[-1] = self.out / "flags"
        self.resume(checkpoint, *words, "-o", self.out / "a.bam", "--also", self.out / "b.sam")
        self.assertEqual(os.stat(self.out / "b.sam").st_ino, before)
        self.assertEqual(sorted(self.files()), ["a.bam", "a.bam.csi", "b.sam", "flags"])

    def test_resumed_at_once_where_other_hosts_may_write(self):
        """On NFS, which the failing fstatfs stands for, a recent file counts as one in use. The
        lock of the checkpoint shows that the sort is dead. Once --resume sorted again."""
        checkpoint = self.killed_while_naming()
        before = os.stat(self.out / "b.sam").st_ino
        self.resume(checkpoint, env=self.faulty("fstatfs:1+:EIO:.journal"))
        self.assertEqual(os.stat(self.out / "b.sam").st_ino, before)
        self.assertEqual(sorted(self.files()), ["a.bam", "b.sam"])

    def test_resumed_in_another_order_is_refused_also_when_files_only_lack_names(self):
        checkpoint = self.killed_while_naming()
        result = self.rocksort("--resume", checkpoint, "-n", clean=False)
        self.assertEqual(result.status, 1)
        self.assertRegex(result.err, "cannot resume .* with -n: its runs were made without")
        self.resume(checkpoint)
        self.assertEqual(sorted(self.files()), ["a.bam", "b.sam"])

    def test_groups_are_not_written_again_with_other_options(self):
        want = self.wanted("groups", SPILL_BUDGET)
        self.sort("groups", fault="renameat2:3:kill", budget=SPILL_BUDGET)
        checkpoint, = self.checkpoints()
        result = self.rocksort("--resume", checkpoint, "-l", "0", clean=False)
        self.assertEqual(result.status, 1)
        self.assertIn(".bam' exists: remove it", result.err)
        self.assertEqual(self.files(), want)
        for path in self.out.glob("*.bam*"):
            path.unlink()
        self.resume(checkpoint, "-l", "0")
        self.assertEqual(set(self.files()), set(want))

    def test_journal_cannot_be_written(self):
        """A warning; the files get their names."""
        want = self.wanted("also")
        result = self.sort("also", fault="write:1:ENOSPC:.journal")
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("warning: cannot write", result.err)
        self.assertEqual(self.files(), want)

    def test_sort_killed_while_the_journal_is_written_leaves_nothing(self):
        for kind, name in (("also", ".journal"), ("groups", "NAMES")):
            self.sort(kind, fault=f"write:1:kill:{name}")
            self.sort_ok("--clean", "--yes", self.out, clean=False)
            self.assertEqual(self.files(), {})

    def test_old_indexes_of_a_single_file(self):
        want = self.wanted("single")
        for number in (1, 2, 3):
            for budget in (None, SPILL_BUDGET):
                for name in ("a.bam", "a.bam.csi", "a.bam.bai"):
                    (self.out / name).write_text("old")
                self.sort("single", fault=f"rename:{number}:kill:/out/", budget=budget)
                listed = self.sort_ok("--clean", self.out, "--yes", clean=False).out.decode()
                self.assertIn("0 of 1 files had their names", listed)
                self.sort_ok("--clean", self.where, "--yes", clean=False)
                self.assertEqual(self.files(), want)
                self.empty()

    def test_journal_of_a_long_name_fits(self):
        """The name of the journal once was longer than a file's can be."""
        for n in (221, 222, 247):
            result = self.sort_ok("-o", self.out / ("n" * n + ".bam"), "--write-index", self.bam)
            self.assertNotIn("warning", result.err)

    def test_single_files_have_no_journal(self):
        report = self.path("report")
        self.sort_ok("--no-PG", "-o", self.out / "a.bam", self.bam, env={
            **self.faulty("open:1:kill:.journal"), "FAULT_REPORT": report})
        with open(report, encoding="ascii") as file:
            counts = dict(line.split() for line in file)
        self.assertEqual((counts["fsync"], counts["fault0"]), ("0", "0"))

    def test_ten_thousand_groups_get_their_names(self):
        records = [bamfile.record(name="r", flag=0, tid=0, pos=1, cigar="3M",
                                  aux=b"XXi" + i.to_bytes(4, "little")) for i in range(10_000)]
        source = self.write("many.bam", bamfile.bam_file("@SQ\tSN:c\tLN:9\n", [("c", 9)], records))
        result = self.rocksort("--split-by", "tag:XX", "-O", "sam", "-o", self.out / "%.sam", source,
                               env=self.faulty("renameat2:5000:kill"), clean=False)
        self.assertEqual(result.status, -signal.SIGKILL, result.err)
        listed = self.sort_ok("--clean", self.out, clean=False).out.decode()
        self.assertRegex(listed, "4999 of 1000[01] files have their names")
        self.sort_ok("--clean", "--yes", self.out, clean=False)
        self.assertEqual(len([name for name in os.listdir(self.out) if ".sam" in name]), 10_001)
