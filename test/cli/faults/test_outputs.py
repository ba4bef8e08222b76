"""Where outputs may and may not be written, also onto an input, and what a failed run says about
the files that it leaves."""

import os
import random
import shutil
import subprocess

import bamfile
import generate
from harness import SAMTOOLS, SPILL_BUDGET, bytes_of, reference_ok
from checkpoints import KilledTest, ResumeTest


class UserTest(KilledTest):
    """Runs as a user other than root."""

    def somebody(self):
        """The words to put before a command to run it as a user who may write in `where`."""
        os.chmod(self.work.parent, 0o711)
        os.chmod(self.where, 0o777)
        if os.geteuid() != 0:
            return []
        if not shutil.which("setpriv"):
            self.skipTest("root may do everything")
        return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


class Names(UserTest):
    """Names of outputs and of their indexes."""

    def test_read_only_file_is_not_replaced(self):
        somebody, out = self.somebody(), self.where / "out.bam"
        for made, options in ((out, []), (self.where / "out.bam.csi", ["--write-index"])):
            made.write_bytes(b"precious")
            made.chmod(0o444)
            if somebody:
                os.chown(made, 65534, 65534)
            result = self.run_program([*somebody, SAMTOOLS, "rocksort", *options, "-o", out,
                                       self.source()])
            self.assert_error(result, f"cannot create '{made}': Permission denied")
            self.assertEqual(os.listdir(self.where), [made.name])
            self.assertEqual(made.read_bytes(), b"precious")
            made.unlink()

    def test_file_of_another_user_in_a_sticky_directory_is_refused_before_the_sort(self):
        """In a directory like /tmp only the owner of a file can replace it. This must be found out
        before the sort; once it was found out only after it."""
        somebody, out = self.somebody(), self.where / "out.bam"
        if not somebody:
            self.skipTest("nobody else's files (not root)")
        out.write_bytes(b"precious")
        out.chmod(0o666)
        self.where.chmod(0o1777)
        os.symlink(out, self.path("link"))
        for name in (out, self.path("link")):
            result = self.run_program([*somebody, SAMTOOLS, "rocksort", "-T", self.scratch, "-o",
                                       name, self.path("absent.bam")])
            self.assert_error(result, f"cannot create '{name}': Operation not permitted")
        self.assertEqual(out.read_bytes(), b"precious")
        os.chown(out, 65534, 65534)
        result = self.run_program([*somebody, SAMTOOLS, "rocksort", "-o", out, self.source()])
        self.assertEqual(result.status, 0, result.err)
        self.assertTrue(bamfile.looks_complete(out))

    def test_open_files_are_written_into(self):
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        for budget in (None, SPILL_BUDGET):
            for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/fd/{}"):
                with open(self.path("open.bam"), "w+b") as file:
                    fd = file.fileno()
                    result = self.run_program(
                        ["sh", "-c", f"exec 7>{self.path('open.bam')}; exec \"$@\" >&7", "sh",
                         SAMTOOLS, "rocksort", "--no-PG", "-o", name.format(7), source],
                        budget=budget)
                    with self.subTest(name=name, budget=budget):
                        self.assertEqual(result.status, 0, result.err)
                        self.assertTrue(os.path.samestat(os.fstat(fd), os.stat(file.name)))
                        self.assert_same_bam(bamfile.read(file.name), want)
                        self.assertEqual(os.listdir(self.scratch), [])

    def test_disk_that_is_full_when_the_file_is_closed_is_an_error(self):
        """Several output chunks, which all wait in the buffer of the file: that the disk is full is
        found out when this is closed. The message then looked at the freed buffer (a
        sanitizer says)."""
        line = "same\t0\tc\t1\t9\t100M\t*\t0\t0\t" + "A" * 100 + "\t" + "I" * 100 + "\n"
        source = self.bam_of("@SQ\tSN:c\tLN:1000\n" + line * 3000)
        for name in ("out.bam", "out.parquet"):
            os.symlink("/dev/full", self.path(name))
            result = self.rocksort("-o", self.path(name), source, budget=SPILL_BUDGET)
            self.assert_error(result, name, "No space left")

    def test_appended_standard_output_keeps_its_content(self):
        path = self.write("all.bam", b"before")
        with open(path, "ab") as file:
            done = subprocess.run([SAMTOOLS, "rocksort", "-o", "/dev/stdout", self.source()],
                                  stdout=file, check=False)
        self.assertEqual(done.returncode, 0)
        with open(path, "rb") as file:
            self.assertEqual(file.read(10), b"before\x1f\x8b\x08\x04")

    def test_mounted_file_is_written_in_place(self):
        mounted, out = self.write("mounted.bam", b"old"), self.write("out.bam", b"")
        if subprocess.run(["mount", "--bind", mounted, out], capture_output=True,
                          check=False).returncode:
            self.skipTest("cannot mount a file (not root)")
        self.addCleanup(subprocess.run, ["umount", out], check=False)
        for budget in (None, SPILL_BUDGET):
            self.sort_ok("-o", out, self.source(), budget=budget)
            self.assertTrue(bamfile.looks_complete(mounted))
            with open(mounted, "wb"):
                pass

    def test_index_must_not_replace_an_input(self):
        source = self.source()
        link = self.path("link")
        os.symlink(source, link)
        for index, name in ((source, source), (link, source), (source, f"{source}##idx##none.bai"),
                            (source, f"file://{source}"), (source, f"file://localhost{source}")):
            with self.subTest(index=index, name=name):
                result = self.rocksort("--write-index", "-o",
                                       f"{self.path('out.bam')}##idx##{index}", name)
                self.assert_error(result, index, "index")
                self.assertTrue(bamfile.looks_complete(source))

    def test_file_url_is_an_absolute_path(self):
        source = self.source()
        for scheme in ("file://localhost", "file://", "file:"):
            with self.subTest(scheme=scheme):
                out = self.path("out.bam")
                self.sort_ok("--write-index", "-o", scheme + out, source)
                self.assertTrue(bamfile.looks_complete(out))
                os.unlink(out)

    def test_relative_reference_of_the_format_is_found_by_resume(self):
        sequence = "".join(random.Random(3).choices("ACGT", k=5000))
        self.write("ref.fa", ">c\n" + sequence + "\n")
        sam = "@SQ\tSN:c\tLN:5000\n" + "".join(
            f"r{i}\t0\tc\t{i % 4900 + 1}\t9\t50M\t*\t0\t0\t{sequence[i % 4900:][:50]}\t"
            f"{'F' * 50}\n" for i in range(9000))
        source = self.bam_of(sam)
        for options in (["-O", "cram,reference=ref.fa"], ["-O", "cram", "--reference", "ref.fa"],
                        ["-O", "cram,level=1", "--output-fmt-option", "reference=ref.fa"]):
            with self.subTest(options=options):
                checkpoint = self.cut_load(*options, source)
                self.resume(checkpoint, cwd="/")
                out = self.path("out.bam")
                reference_ok("quickcheck", out)
                os.unlink(out)


class LongNames(ResumeTest):
    """Names of outputs with the maximal length of a file name, and longer."""

    def test_too_long_name_is_refused_before_the_sort(self):
        source, longest = self.source(), "x" * 255
        for name, index in (("x" * 256, []), (longest, ["--write-index"]),
                            (f"{longest}/out.bam", [])):
            with self.subTest(name=name[:4], n=len(name)):
                result = self.rocksort(*index, "-o", self.path(name), self.path("absent.bam"))
                self.assert_error(result, f"cannot create '{self.path(name)}")
        self.sort_ok("-o", self.path(longest), source)
        self.assertTrue(bamfile.looks_complete(self.path(longest)))

    def test_output_name_as_long_as_can_be(self):
        source = self.bam_of(generate.reads(4000, generate.reference()))
        for n in (220, 232, 251):
            for budget in (None, SPILL_BUDGET):
                with self.subTest(n=n, budget=budget):
                    out = self.path("n" * n + ".bam")
                    self.sort_ok("-o", out, source, budget=budget)
                    self.assertEqual(len(bamfile.split(bamfile.read(out).records)), 8000)
                    os.unlink(out)


class Resumed(KilledTest):
    """The outputs of resumed sorts."""

    def test_resume_to_standard_output_is_for_once(self):
        """After a failed --resume -o -, --resume without -o writes to the output of the first sort.
        It once wrote to standard output again: in a job into the log, with exit status 0, and it
        removed the checkpoint."""
        source, out = self.source(), self.path("out.bam")
        want = self.sort_bam("--no-PG", source)
        checkpoint = self.cut_load("--write-index", source)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([SAMTOOLS, "rocksort", "--resume", checkpoint, "-o", "-"],
                                  stdout=full,
                                  stderr=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.resume(checkpoint).out, b"")
        self.assert_same_bam(bamfile.read(out), want)
        self.assertTrue(os.path.exists(out + ".csi"))


class OntoItself(UserTest):
    """The input is the output, and no file can be made beside it, so that it is overwritten in
    place. If the sort failed then, records were once lost: those in memory, and those of a
    checkpoint that needed the input again."""

    def setUp(self):
        super().setUp()
        self.file = self.source()
        self.want = self.sort_bam("--no-PG", self.file)
        for path, mode in ((self.work, 0o555), (self.scratch, 0o777), (self.file, 0o666)):
            os.chmod(path, mode)
        self.addCleanup(os.chmod, self.work, 0o755)
        self.user = self.somebody()

    def as_user(self, *args, **how):
        """Runs rocksort as a user who may not write in work."""
        return self.run_program([*self.user, SAMTOOLS, "rocksort", "--no-PG", *args], **how)

    def test_input_is_replaced_by_its_sorted_form(self):
        for place in (["-T", self.where], []):
            for budget in (None, SPILL_BUDGET):
                result = self.as_user(*place, "-o", self.file, self.file, budget=budget)
                self.assertEqual(result.status, 0, result.err)
                self.assert_same_bam(bamfile.read(self.file), self.want)
                self.assertEqual((self.checkpoints(), os.listdir(self.scratch)), ([], []))

    def test_killed_sort_onto_itself_can_be_resumed(self):
        before = bytes_of(self.file)
        for budget in (None, SPILL_BUDGET):
            for action in ("EIO", "kill", "term"):
                with open(self.file, "wb") as file:
                    file.write(before)
                with self.subTest(budget=budget, action=action):
                    result = self.as_user("-T", self.where, "-o", self.file, self.file,
                                          budget=budget,
                                          env=self.faulty(f"write:2:{action}:{self.file}"))
                    self.assertNotEqual(result.status, 0)
                    checkpoint, = self.checkpoints()
                    result = self.as_user("--resume", checkpoint)
                    self.assertEqual(result.status, 0, result.err)
                    self.assert_same_bam(bamfile.read(self.file), self.want)

    def test_checkpoint_is_synced_before_the_input_is_overwritten(self):
        """The only copy of the records is synced to the disk before the input is overwritten."""
        report = self.scratch / "report"
        self.as_user("-T", self.where, "-o", self.file, self.file,
                     env={**self.faulty("fsync:9999:EIO:.sst,fdatasync:9999:EIO:.sst"),
                          "FAULT_REPORT": str(report)})
        self.assertGreater(sum(self.n_faults(report)), 0)

    def test_input_stays_if_the_checkpoint_cannot_be_written(self):
        """If the checkpoint cannot be written, the input is not overwritten."""
        before = bytes_of(self.file)
        for budget in (None, SPILL_BUDGET):
            result = self.as_user("-T", self.where, "-o", self.file, self.file, budget=budget,
                                  env=self.faulty("openat:1+:ENOSPC:STORE.new"))
            self.assert_error(result, self.file, "another output")
            self.assertTrue(bytes_of(self.file) == before)


class Messages(UserTest):
    """Messages about files that are left."""

    def test_standard_error_without_reader_ends_nothing(self):
        """Standard error is a pipe without a reader: the program must not die of SIGPIPE, as it
        once did after its output was complete."""
        source, out = self.source(), self.path("out.bam")
        for options in ([], ["--checksum"], ["--progress"]):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([SAMTOOLS, "rocksort", *options, "-o", out, source],
                                  stderr=writer, check=False)
            os.close(writer)
            with self.subTest(options=options):
                self.assertEqual(done.returncode, 0)
                self.assertTrue(bamfile.looks_complete(out))

    def test_quiet_says_what_is_left(self):
        result = self.rocksort("--quiet", "-T", self.where, "-o", "/dev/full", self.source(),
                               budget=SPILL_BUDGET, clean=False)
        self.assert_error(result, "/dev/full")
        checkpoint, = self.checkpoints()
        self.assertTrue(result.err.endswith(f"--resume {checkpoint}\n"), result.err)
        result = self.rocksort("--quiet", "--resume", checkpoint, "-o", "/dev/full", clean=False)
        self.assertTrue(result.err.endswith(f"--resume {checkpoint}\n"), result.err)
        source = self.path("in.bam")
        result = self.rocksort("--quiet", "-o", self.path("out.bam"), source,
                               env=self.faulty("rename:1:EIO:out.bam,unlink:1:EIO:out.bam"))
        self.assertIn("cannot remove the incomplete file '", result.err)

    def test_disk_without_inodes_is_named(self):
        disk = self.mount(self.work / "disk", "20m,nr_inodes=12")
        result = self.rocksort("-T", disk, "-o", self.path("out.bam"), self.source(),
                               budget=SPILL_BUDGET)
        self.assert_error(result, f"'{disk}' has ", " inodes for files; free space or change -T")
        self.assertNotIn("are needed", result.err)

    def test_no_directory_is_left_with_a_umask_of_0777(self):
        """With a umask of 0777 no temporary directory is left. One that nobody could enter once
        was."""
        result = self.run_program(["sh", "-c", 'umask 0777; exec "$@"', "sh", *self.somebody(),
                                   SAMTOOLS, "rocksort", "-T", self.where, self.source()],
                                  budget=SPILL_BUDGET)
        self.assert_error(result, "cannot make files in the temporary directory")
        self.assertNotIn("warning", result.err)
        self.assertEqual(os.listdir(self.where), [])
