"""--markdup: which options are refused, alone and together with others. What they mean is tested in
test_markdup.py, the text of all messages in test/unit/command/test_sort_options_markdup.c."""
import bamfile
import templates
from harness import CliTest


class Refused(CliTest):
    def setUp(self):
        super().setUp()
        self.source = self.write("in.sam", bamfile.sq_text(templates.REFS))

    def test_wrong_options_are_refused_with_advice(self):
        for options, words in (("-u", "does not take -u"), ("-@ 4", "does not take -@: give"),
                               ("--output-fmt sam", "does not take --output-fmt"),
                               ("--write-index", "does not take --write-index"),
                               ("-d 2500x", "not '2500x'"), ("-Sx", "does not take -x"),
                               ("--barcode-rgx '('", "not a regular expression"),
                               ("-f 'stats", "has no end"), ("-r in.bam", "not 'in.bam'")):
            self.assert_refused("--markdup=" + options, source=self.source, mention=[words])

    def test_markdup_options_apart_are_explained(self):
        for args in (["--markdup", "-S"], ["--markdup", "-S -d 2500"], ["--fixmate", "-r"]):
            result = self.rocksort(*args, self.source)
            self.assertEqual(result.status, 1)
            self.assertIn("invalid option", result.err)
            self.assertIn("one word: --fixmate='-r', --markdup='-S -d 2500'", result.err)
        self.assertNotIn("markdup", self.rocksort("-S", self.source).err)

    def test_markdup_needs_the_order_by_coordinate_and_a_sort(self):
        """Other orders, and what looks at records only."""
        for options in (["-n"], ["-N"], ["-t", "CB"], ["-M"], ["-I", "x.fa"], ["--shuffle"],
                        ["--template-coordinate"], ["-n", "--resume=x", "--plan"]):
            with self.subTest(options=options):
                self.assert_error(self.rocksort("--markdup", *options, self.source),
                                  "--resume" if "--plan" in options else "order by coordinate")
        for option in ("--checksum", "--checksum-only", "--verify"):
            self.assert_error(self.rocksort("--markdup", option, self.source),
                              "--markdup cannot", option)

    def test_two_reports_need_two_places(self):
        for options in (["--markdup=-f r --metrics ./r"], ["--markdup=-f r", "--report", "r"],
                        ["--markdup=--metrics r", "--report", "r"]):
            with self.subTest(options=options):
                self.assert_error(self.rocksort(*options, "-o", "out.bam", self.source),
                                  " is named for ")
        for options in (["--markdup=-f - --metrics -"], ["--markdup=-f -", "--report", "-"],
                        ["--markdup=--metrics -", "--report", "-"]):
            with self.subTest(options=options):
                self.assert_error(self.rocksort(*options, "-o", "out.bam", self.source),
                                  " would mix on standard output")
