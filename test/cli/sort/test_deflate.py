"""--deflate: each engine writes the same records; the level decides which is taken; one that is not
built in is refused. The program that has only zlib (`zlib-only` below the build directory) reads,
writes and resumes, too."""

import os
import re
import shutil
import unittest
import zlib

import bamfile
import generate
from checkpoints import ResumeTest
from harness import BUILD, SAMTOOLS_ROCKSORT, SPILL_BUDGET, CliTest, bytes_of, json_of

ENGINES = ("libdeflate", "igzip", "rocksort", "zlib")
ZLIB_ONLY = next((str(path) for path in (BUILD / "zlib-only/samtools-rocksort",
                                         BUILD / "build/plain/zlib-only/samtools-rocksort")
                  if os.access(path, os.X_OK)), None)
needs_zlib_only = unittest.skipUnless(ZLIB_ONLY, "no program with zlib only was built")


def blocks(data):
    """The raw bytes of each block of a BGZF file."""
    found = []
    while data:
        one = zlib.decompressobj(31)
        found.append(one.decompress(data))
        data = one.unused_data
    return found


class DeflateTest(CliTest):
    """What the program has, as --version says."""

    def setUp(self):
        super().setUp()
        self.version = self.run_program([SAMTOOLS_ROCKSORT, "--version"]).out.decode()
        libraries = re.search(r"^Using (.*)$", self.version, re.M).group(1).split(", ")
        names = {line.split(" ")[0] for line in libraries} | {"rocksort"}
        self.built_in = [engine for engine, library in
                         zip(ENGINES, ("libdeflate", "ISA-L", "rocksort", "zlib")) if library in names]

    def at_level(self, level, is_text=False):
        """What auto takes."""
        if level == 1 and "igzip" in self.built_in:
            return "igzip"
        if level < 6 and not is_text:
            return "rocksort"
        return "libdeflate" if "libdeflate" in self.built_in else "zlib"

    def assert_same_deflate(self, got, want):
        """The same content, and nearly the same size: blocks end where the work was divided. Other
        engines and levels write a hundredth more or less."""
        self.assertEqual(b"".join(blocks(got)), b"".join(blocks(want)))
        self.assertLess(abs(len(got) - len(want)), len(want) / 500)

    def sort(self, *options, **how):
        out = self.path("out.bam")
        self.sort_ok("--no-PG", *options, "-o", out, **how)
        return bytes_of(out)


class Engines(DeflateTest):
    """What is written."""

    def test_version_names_the_engines(self):
        last = self.version.splitlines()[2]
        first = "igzip at level 1, by " if self.at_level(1) == "igzip" else ""
        self.assertEqual(last, f"Deflates BAM by {first}rocksort up to level 5 and by default, by "
                               f"{self.at_level(6)} from level 6 on")
        self.assertIn("zlib", self.built_in)

    def test_each_engine_writes_the_same_records(self):
        source = self.bam_of(generate.odd(4000, seed=5))
        want = self.sort_bam("--no-PG", "-u", source)
        sizes = {}
        for engine in self.built_in:
            for level in {"igzip": (1,), "rocksort": (2, 3, 4, 5)}.get(engine, (1, 6, 9)):
                with self.subTest(engine=engine, level=level):
                    options = ["--deflate", engine, "-l", str(level)]
                    data = self.sort(*options, source)
                    self.assert_same_bam(bamfile.parse_file(data), want)
                    self.assertLessEqual(max(map(len, blocks(data))), 0xff00)
                    self.assert_same_deflate(self.sort(*options, "-@", "4", source), data)
                    self.assert_same_bam(bamfile.parse_file(self.sort(
                        *options, "-@", "3", source, budget=SPILL_BUDGET)), want)
                    sizes[engine, level] = len(data)
        # Another engine wrote other bytes.
        self.assertEqual(len(set(sizes.values())), len(sizes), sizes)

    def test_auto_takes_the_best_engine_of_the_level(self):
        source = self.bam_of(generate.odd(3000, seed=6))
        for level in (-1, 1, 2, 5, 6):
            how = ["-l", str(level)] if level >= 0 else []
            want = self.sort("--deflate", self.at_level(level), *how, source)
            for options in ([], ["--deflate", "auto"], ["--deflate", "zlib", "--deflate", "auto"]):
                got = self.sort(*how, *options, source)
                self.assert_same_deflate(got, want)
            for engine in self.built_in:
                if engine != self.at_level(level) and (engine, level) in (("igzip", 1), ("zlib", 1)):
                    other = self.sort("--deflate", engine, *how, source)
                    with self.assertRaises(AssertionError):
                        self.assert_same_deflate(other, want)

    def test_text_goes_to_libdeflate(self):
        """Our own encoder knows BAM records; libdeflate makes smaller files of SAM."""
        source = self.write("in.sam", generate.odd(3000, seed=6))
        for options, level in (([], -1), (["-l", "3"], 3), (["-l", "6"], 6)):
            want = self.sort("-O", "sam.gz", "--deflate", self.at_level(level, True), *options, source)
            self.assert_same_deflate(self.sort("-O", "sam.gz", *options, source), want)
            other = self.sort("-O", "sam.gz", "--deflate", "rocksort", source)
            with self.assertRaises(AssertionError):
                self.assert_same_deflate(other, want)

    def test_blocks_that_do_not_get_smaller_are_stored(self):
        source = self.bam_of(generate.incompressible(300))
        want = self.sort("-u", source)
        for engine in self.built_in:
            data = self.sort("--deflate", engine, "-l", "1", source)
            self.assertEqual(b"".join(blocks(data)), b"".join(blocks(want)), engine)
            self.assertLessEqual(len(data), len(want), engine)

    def test_each_engine_writes_the_same_compressed_sam(self):
        source = self.write("in.sam", generate.odd(2000))
        out = self.path("out.sam.gz")
        texts = set()
        for engine in self.built_in:
            self.sort_ok("--no-PG", "-l1", "--deflate", engine, "--write-index", "-o", out, source)
            texts.add(b"".join(blocks(bytes_of(out))))
        self.assertEqual(len(texts), 1)

    def test_stats_name_what_was_asked_for_and_what_was_taken(self):
        source, stats = self.write("in.sam", generate.odd(500)), self.path("report.json")
        for options, asked, taken in (
                (["-l", "1"], "auto", self.at_level(1)), ([], "auto", self.at_level(-1)),
                (["-l", "5"], "auto", self.at_level(5)), (["-l", "6"], "auto", self.at_level(6)),
                (["--deflate", "zlib"], "zlib", "zlib"), (["-u"], "auto", None),
                (["--deflate", "zlib", "-u"], "zlib", None), (["-O", "sam"], "auto", None),
                (["-O", "sam,level=1"], "auto", self.at_level(1, True)),
                (["-O", "sam.gz"], "auto", self.at_level(-1, True)), (["-O", "cram,no_ref=1"], "auto", None)):
            self.sort_ok(*options, "--report", stats, source)
            data = json_of(stats)
            got = (data["options"]["deflate"], data["output"]["deflate"])
            self.assertEqual(got, (asked, taken), options)
            self.assertEqual(data["versions"]["isal"] is not None, "igzip" in self.built_in)
            self.assertRegex(data["versions"]["deflate"], r"^(libdeflate|zlib) \d")


class Refused(DeflateTest):
    """What cannot be done is said at once."""

    def setUp(self):
        super().setUp()
        self.source = self.write("in.sam", generate.pairs(5))

    def test_level_that_our_own_engine_lacks_is_refused(self):
        for level in ("6", "9"):
            self.assert_refused("--deflate", "rocksort", "-l", level, source=self.source,
                                mention=["--deflate rocksort", f"not {level}", "levels 1 to 5"])
        for options in ([], ["-l", "1"], ["-l", "5"]):
            self.sort_bam("--deflate", "rocksort", *options, self.source)

    def test_level_that_igzip_lacks_is_refused(self):
        if "igzip" not in self.built_in:
            self.skipTest("igzip is not built in")
        for options in (["-l", "2"], ["-l", "6"], ["-O", "bam,level=9"],
                        ["--output-fmt-option", "level=3"]):
            level = options[1][-1]
            self.assert_refused("--deflate", "igzip", *options, source=self.source,
                                mention=["--deflate igzip", f"not {level}", "give -l 1"])
        self.assert_refused("--deflate", "igzip", source=self.source, mention=["give -l 1, too"])
        for options in (["-l1"], ["-l0"], ["-u"], ["-O", "bam,level=1"]):
            self.sort_bam("--deflate", "igzip", *options, self.source)

    def test_other_formats_give_a_warning(self):
        for form in ("sam", "cram,no_ref=1"):
            for engine in self.built_in:
                result = self.sort_ok("--quiet", "--deflate", engine, "-O", form, self.source)
                self.assertNotIn("--deflate", result.err)
                result = self.sort_ok("--deflate", engine, "-O", form, self.source)
                self.assertIn(f"samtools rocksort: warning: --deflate {engine} is ignored: it is for "
                              "BAM and compressed SAM\n", result.err)


class Resumed(ResumeTest):
    """A checkpoint remembers --deflate; nothing in it was made by it."""

    def taken(self, checkpoint, *options, program=None):
        """Resumes a copy; returns what --report says, and the warnings."""
        copy, out = self.path("copy.rocksort.1.abcdef"), self.path("out.bam")
        shutil.copytree(checkpoint, copy)
        stats = self.path("report.json")
        result = self.run_program([program or SAMTOOLS_ROCKSORT, "--resume", copy, *options, "--report",
                                   stats, "-o", out], budget=SPILL_BUDGET)
        self.assertEqual(result.status, 0, result.err)
        self.assertFalse(os.path.exists(copy))
        self.assert_same_bam(bamfile.read(out), self.want)
        data = json_of(stats)
        return ((data["options"]["deflate"], data["output"]["deflate"]),
                [line for line in result.err.splitlines() if "warning" in line])

    def test_engine_is_kept_in_the_checkpoint(self):
        source = self.source()
        self.want = self.sort_bam("--no-PG", "-u", source)
        checkpoint = self.fails_in_merge("-l", "1", "--deflate", "zlib", source)
        for options, want in (([], ("zlib", "zlib")), (["-l", "3"], ("zlib", "zlib")),
                              (["-u"], ("zlib", None))):
            self.assertEqual(self.taken(checkpoint, *options), (want, []))
        asked, taken = self.taken(checkpoint, "--deflate", "auto")[0]
        self.assertEqual(asked, "auto")
        self.assertIn(taken, ENGINES)

    def test_igzip_at_another_level_becomes_auto(self):
        """The level was changed: auto is taken, without a word."""
        source = self.source()
        self.want = self.sort_bam("--no-PG", "-u", source)
        if b"ISA-L" not in self.run_program([SAMTOOLS_ROCKSORT, "--version"]).out:
            self.skipTest("igzip is not built in")
        checkpoint = self.fails_in_merge("-l", "1", "--deflate", "igzip", source)
        self.assertEqual(self.taken(checkpoint), (("igzip", "igzip"), []))
        asked, warnings = self.taken(checkpoint, "-l", "6")
        self.assertEqual((asked[0], warnings), ("auto", []))
        if ZLIB_ONLY:
            asked, warnings = self.taken(checkpoint, program=ZLIB_ONLY)
            self.assertEqual(asked, ("auto", "rocksort"))
            self.assertEqual(len(warnings), 1)
            self.assertIn("--deflate igzip, which is not built in", warnings[0])


@needs_zlib_only
class ZlibOnly(DeflateTest):
    """A build without libdeflate and ISA-L."""

    def run_it(self, *args, **how):
        return self.run_program([ZLIB_ONLY, *args], **how)

    def test_version_names_zlib_alone(self):
        lines = self.run_it("--version").out.decode().splitlines()
        self.assertRegex(lines[1], r"^Using htslib \d+\.\d+\S*, zlib \d+\.\d+\S*, RocksDB ")
        self.assertEqual(lines[2], "Deflates BAM by rocksort up to level 5 and by default, by zlib from "
                                   "level 6 on")

    def test_zlib_build_writes_the_same_records(self):
        source = self.bam_of(generate.odd(6000, seed=7))
        want = self.sort_bam("--no-PG", "-l6", "--deflate", "zlib", source)
        whole = self.sort_ok("--no-PG", "-l6", "--deflate", "zlib", source).out
        for options in ([], ["--deflate", "auto"], ["--deflate", "zlib"]):
            for budget in (None, SPILL_BUDGET):
                done = self.run_it("--no-PG", "-l6", *options, source, budget=budget)
                self.assertEqual(done.status, 0, done.err)
                self.assert_same_bam(bamfile.parse_file(done.out), want)
                if not budget:
                    self.assert_same_deflate(done.out, whole)

    def test_damaged_block_is_noticed_by_zlib(self):
        source = self.bam_of(generate.odd(2000))
        data = bytearray(bytes_of(source))
        data[len(data) // 2] ^= 0x10
        result = self.run_it(self.write("damaged.bam", bytes(data)), "-o", self.path("out.bam"))
        self.assert_error(result, "damaged.bam")

    def test_message_names_the_missing_package(self):
        for engine, package, conda in (("igzip", "libisal-dev", "isa-l"),
                                       ("libdeflate", "libdeflate-dev", "libdeflate")):
            result = self.run_it("--deflate", engine, "-l1", "-o", self.path("out.bam"),
                                 self.write("in.sam", generate.pairs(5)))
            self.assert_error(result, f"--deflate {engine} is not built in", "give zlib or auto",
                              package, f"conda: {conda}")
            self.assertFalse(os.path.exists(self.path("out.bam")))
