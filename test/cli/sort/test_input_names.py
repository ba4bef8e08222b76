"""Which names on the command line are inputs, and inputs whose file has been removed."""

import os

import bamfile
import generate
from harness import SPILL_BUDGET, CliTest, bytes_of
from checkpoints import ResumeTest
from test_inputs import bam_bytes, number_of, tie


class Positionals(CliTest):
    """Which names are inputs, and which name is the output."""

    def setUp(self):
        super().setUp()
        self.write("a.bam", bam_bytes(map(tie, range(10))))
        self.write("b.bam", bam_bytes(map(tie, range(10, 20))))
        self.before = self.files()

    def files(self):
        """The content of each file."""
        return {path.name: path.read_bytes() for path in self.work.iterdir() if path.is_file()}

    def numbers(self, data):
        return [number_of(raw) for raw in bamfile.split(bamfile.parse_file(data).records)]

    def test_with_o_all_names_are_inputs_and_without_it_the_second_is_the_output(self):
        os.mkdir(self.path("d"))
        os.mkdir(self.path("dir"))
        a, both = list(range(10)), list(range(20))
        for args, out, want in (
                (["-o", "out", "a.bam", "b.bam"], "out", both),
                (["a.bam", "-o", "out", "b.bam"], "out", both),
                (["a.bam", "b.bam", "-o", "out"], "out", both),
                (["-oout", "--", "a.bam", "b.bam"], "out", both),
                (["-f", "-o", "out", "a.bam", "b.bam"], "out", both),
                (["-o", "-", "a.bam", "b.bam"], None, both),
                (["a.bam"], None, a), (["a.bam", "-"], None, a), (["-f", "a.bam", "-"], None, a),
                (["-", "-"], None, both[10:]), (["-", "out"], "out.bam", both[10:]),
                (["a.bam", "out"], "out.bam", a), (["a.bam", "d/x.y"], "d/x.y.bam", a),
                (["a.bam", "dir"], "dir.bam", a), (["a.bam", "b"], "b.bam", a),
                (["-n", "a.bam", "out", "-@", "2"], "out.bam", a), (["a.bam", "x.bam"], "x.bam.bam", a),
                (["-f", "a.bam", "out.x"], "out.x", a), (["a.bam", "b.bam", "-f"], "b.bam", a)):
            with self.subTest(args=args):
                result = self.sort_ok(*args, stdin=self.before["b.bam"])
                self.assertEqual(self.numbers(bytes_of(self.path(out)) if out else result.out), want)
                self.assertEqual(bool(result.out), not out)
                self.assertEqual(set(self.files()) - set(self.before),
                                 {out} - {"b.bam", "d/x.y.bam", None})
                if out:
                    os.unlink(self.path(out))
                self.write("b.bam", self.before["b.bam"])

    def test_names_that_could_be_mistaken_are_refused(self):
        for args, *mentions in (
                (["a.bam", "b.bam"], "b.bam", "-o", "-f"), (["a.bam", "a.bam"], "a.bam", "-o", "-f"),
                (["-n", "a.bam", "b.bam"], "b.bam", "-o", "-f"), (["-", "b.bam"], "b.bam", "-o", "-f"),
                (["a.bam", "b.bam", "c"], "-o"), (["-f", "a.bam", "b.bam", "c"], "-o"),
                (["-o", "out", "-", "-"], "standard input"),
                (["-o", "out", "-", "a.bam", "-"], "standard input"),
                (["--checksum-only", "-", "-"], "standard input")):
            with self.subTest(args=args):
                result = self.rocksort(*args, stdin=self.before["a.bam"])
                self.assert_error(result, *mentions)
                self.assertEqual(result.out, b"")
                self.assertEqual(self.files(), self.before)


class Unnamed(ResumeTest):
    """Inputs whose file has been removed."""

    def test_input_without_a_name(self):
        """/dev/stdin is a removed file, for which realpath fails. The message once was "out of
        memory"."""
        sam = generate.odd(9000, seed=81).encode()
        want = self.sort_bam("--no-PG", stdin=sam)
        for source in (self.source(), self.write("in.sam", sam)):
            with open(source, "rb") as file:
                os.unlink(source)
                for budget in (None, SPILL_BUDGET):
                    with self.subTest(source=source, budget=budget):
                        self.assert_same_bam(self.sort_bam("--no-PG", "-o", "-", "/dev/stdin",
                                                           stdin=file, budget=budget), want)
