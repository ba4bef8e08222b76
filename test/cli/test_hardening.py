"""The programs are hardened like those of Debian. Special builds, which users do not get, are not
tested."""

import re
import shutil
import subprocess
import unittest

from harness import ROOT, SAMTOOLS, SAMTOOLS_ROCKSORT, CliTest, sanitized, text_of

PROGRAMS = (SAMTOOLS, SAMTOOLS_ROCKSORT)


def readelf(*options):
    """What readelf prints of a program."""
    return subprocess.run(["readelf", "-W", *options], capture_output=True, text=True,
                          check=True).stdout


@unittest.skipUnless(shutil.which("readelf"), "no readelf")
class Hardening(CliTest):
    """What readelf shows of the programs."""

    def setUp(self):
        super().setUp()
        if sanitized():
            self.skipTest("a build with sanitizers")

    def test_position_independent(self):
        for program in PROGRAMS:
            self.assertRegex(readelf("-h", program), r"Type:\s+DYN")
            self.assertRegex(readelf("-d", program), r"FLAGS_1\).*PIE")

    def test_relocations_are_read_only(self):
        for program in PROGRAMS:
            self.assertIn("GNU_RELRO", readelf("-l", program))
            self.assertRegex(readelf("-d", program), r"BIND_NOW|FLAGS_1\).*NOW")

    def test_no_executable_stack_or_data(self):
        for program in PROGRAMS:
            stack = re.search(r"GNU_STACK.*", readelf("-l", program)).group(0)
            self.assertRegex(stack, r"\bRW\b")
            self.assertNotRegex(stack, r"\bRWE\b")
            self.assertNotRegex(readelf("-l", program), r"LOAD.*\bRWE\b")
            self.assertNotIn("TEXTREL", readelf("-d", program))

    def test_stack_protector_and_checked_functions(self):
        for program in PROGRAMS:
            symbols = readelf("--dyn-syms", program)
            self.assertIn("__stack_chk_fail", symbols)
            # Several fortified versions of functions that write to buffers.
            self.assertGreaterEqual(len(set(re.findall(r"__\w+_chk\b", symbols))), 3, symbols)

    def test_programs_search_no_libraries_where_others_may_write(self):
        for program in PROGRAMS:
            for entry in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", readelf("-d", program)):
                for folder in entry.split(":"):
                    self.assertTrue(folder.startswith("/"), entry)


class Flags(CliTest):
    """Warnings of the compiler."""

    def test_format_that_is_no_literal_is_a_warning(self):
        text = text_of(ROOT / "Makefile")
        for flag in ("-Wformat=2", "-Wformat-security", "-fstack-protector-strong", "-fPIE",
                     "-D_FORTIFY_SOURCE=2"):
            self.assertIn(flag, text)
