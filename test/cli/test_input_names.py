"""Which names on the command line are inputs, and inputs whose file has been removed."""

import os

import bamfile
import generate
from harness import SAMTOOLS, SPILL_BUDGET, CliTest, own_lines
from checkpoints import ResumeTest
from test_inputs import bam_bytes, number_of, tie


class Positionals(CliTest):
    """Which names are inputs, and which name is the output."""

    def setUp(self):
        super().setUp()
        self.a = self.write("a.bam", bam_bytes(map(tie, range(10))))
        self.b = self.write("b.bam", bam_bytes(map(tie, range(10, 20))))
        self.before = self.files()

    def files(self):
        return {name: (self.work / name).read_bytes() for name in os.listdir(self.work)}

    def numbers(self, data):
        return [number_of(raw) for raw in bamfile.split(bamfile.parse_file(data).records)]

    def refused(self, *args, mentions=(), **how):
        """The run fails and makes or changes no file."""
        with self.subTest(args=args):
            result = self.rocksort(*args, **how)
            self.assert_error(result, *mentions)
            self.assertEqual(result.out, b"")
            self.assertEqual(self.files(), self.before)

    def test_with_o_all_are_inputs(self):
        for args in (["-o", "out", "a.bam", "b.bam"], ["a.bam", "-o", "out", "b.bam"],
                     ["a.bam", "b.bam", "-o", "out"], ["-oout", "--", "a.bam", "b.bam"]):
            self.assertEqual(self.sort_ok(*args).out, b"")
            self.assertEqual(self.numbers(self.files()["out"]), list(range(20)))
            self.assertEqual(set(self.files()), {"a.bam", "b.bam", "out"})
            os.unlink(self.path("out"))

    def test_with_o_to_standard_output(self):
        self.assertEqual(self.numbers(self.sort_ok("-o", "-", "a.bam", "b.bam").out),
                         list(range(20)))
        self.assertEqual(self.files(), self.before)

    def test_f_says_nothing_with_o(self):
        self.sort_ok("-f", "-o", "out", "a.bam", "b.bam")
        self.assertEqual(self.numbers(self.files()["out"]), list(range(20)))

    def test_prefix_that_is_a_directory(self):
        os.mkdir(self.work / "out")
        self.sort_ok("a.bam", "out")
        self.assertEqual(self.numbers((self.work / "out.bam").read_bytes()), list(range(10)))

    def test_prefix_of_an_existing_output(self):
        """The prefix `b` replaces an existing b.bam, as it has always done."""
        self.sort_ok("a.bam", "b")
        self.assertEqual(self.numbers(self.files()["b.bam"]), list(range(10)))

    def test_standard_output_as_prefix(self):
        for args in (["a.bam", "-"], ["-f", "a.bam", "-"]):
            self.assertEqual(self.numbers(self.sort_ok(*args).out), list(range(10)))
            self.assertEqual(self.files(), self.before)
        result = self.sort_ok("-", "-", stdin=self.before["b.bam"])
        self.assertEqual(self.numbers(result.out), list(range(10, 20)))

    def test_whole_name(self):
        self.sort_ok("-f", "a.bam", "out.x")
        self.assertEqual(self.numbers(self.files()["out.x"]), list(range(10)))
        self.sort_ok("a.bam", "b.bam", "-f")
        self.assertEqual(self.numbers(self.files()["b.bam"]), list(range(10)))

    def test_second_name_is_refused_in_the_classic_form(self):
        for args in (["a.bam", "b.bam"], ["-n", "a.bam", "b.bam"], ["a.bam", "a.bam"],
                     ["-", "b.bam"]):
            self.refused(*args, mentions=[args[-1], "-o", "-f"], stdin=self.before["a.bam"])

    def test_three_names(self):
        for args in (["a.bam", "b.bam", "c"], ["-f", "a.bam", "b.bam", "c"],
                     ["a.bam", "b.bam", "a.bam", "b.bam"]):
            self.refused(*args, mentions=["-o"])

    def test_standard_input_twice(self):
        for args in (["-o", "out", "-", "-"], ["-o", "out", "-", "a.bam", "-"],
                     ["--checksum-only", "-", "-"]):
            self.refused(*args, mentions=["standard input"], stdin=self.before["a.bam"])

    def test_second_name_is_never_the_output_in_place_of_samtools_sort(self):
        env = {"SAMTOOLS_SORT": "rocksort"}
        for args in (["a.bam", "out"], ["a.bam", "b.bam"], ["a.bam", "b.bam", "out"]):
            result = self.run_program([SAMTOOLS, "sort", *args], env=env)
            self.assertEqual(result.status, 1)
            self.assertIn("-o", own_lines(result.err)[0])
            self.assertEqual(self.files(), self.before)
        result = self.run_program([SAMTOOLS, "sort", "-o", "out", "a.bam", "b.bam"], env=env)
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.numbers(self.files()["out"]), list(range(20)))

    def test_usage_explains_names(self):
        text = self.rocksort("--help").out.decode()
        for words in ("-o out.bam in.bam [in.bam ...]", "in.bam out.prefix", "@SQ"):
            self.assertIn(words, text)


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
