"""Inputs and outputs that are URLs: objects of an S3 server and files of a web server, both on
loopback addresses (object_server.py).

A sort whose server fails must end with one error that names the URL, and no object may look
complete. A server that falls silent must not keep the sort waiting for ever.
"""

import base64
import functools
import itertools
import os
import random
import unittest

import bamfile
import generate
import object_server
import test_spindle
from harness import (SLOW, CliTest, bytes_of, needs_pysam, reference_ok, reference_view, sam_split,
                     text_of)

MIB = 1 << 20
# libcurl averages the speed over 5 s before it calls it slow.
SOON_SILENT = {"HTS_LOW_SPEED_TIME": "1"}
STALL_LIMIT_S = 30 * SLOW
SERVERS, NUMBERS = {}, itertools.count()


def server(kind):
    """One server of a kind serves all tests of this module: starting moto takes a second."""
    if kind not in SERVERS:
        SERVERS[kind] = kind()
    SERVERS[kind].reset()
    return SERVERS[kind]


def tearDownModule():
    for each in SERVERS.values():
        each.end()


def at(method, word, fault, after=0):
    """A function for Server.fault: requests with the word in their path fail, after the first."""
    seen = []

    def choose(of, path):
        if of != method or word not in path:
            return None
        seen.append(path)
        return fault if len(seen) > after else None
    return choose


@functools.cache
def inputs():
    """(small BAM, BAM whose sorted form is an upload of two parts), neither of them sorted."""
    head = bamfile.bam_header("@HD\tVN:1.6\n@SQ\tSN:c\tLN:9000\n", [("c", 9000)])
    noise, step = base64.b64encode(random.Random(1).randbytes(11 * MIB)), 6000
    small = [bamfile.record(f"r{i:04d}", 0, 0, 7919 * i % 8000, "10M", "ACGTACGTAC")
             for i in range(2000)]
    large = [bamfile.record(f"r{i:04d}", 0, 0, 7919 * i % 8000, "1M", "A",
                            aux=b"XNZ" + noise[i * step : (i + 1) * step] + b"\0")
             for i in range(len(noise) // step)]
    return [bamfile.bgzf(head + b"".join(records)) + bamfile.bgzf(b"")
            for records in (small, large)]


class UrlTest(CliTest):
    """Base of the tests."""

    env = {"HOME": "/nonexistent"}
    nowhere = "s3+http://bucket/x.bam"

    def setUp(self):
        super().setUp()
        env = {**self.env, "HTS_S3_HOST": "127.0.0.1:9"}
        if "not supported" in self.rocksort("-o", "x.bam", self.nowhere, env=env).err:
            self.skipTest("htslib was built without S3")
        self.small, self.large = inputs()

    def sorted_here(self, content, *options):
        """What rocksort makes of these bytes as a local file."""
        out = self.path("expected.bam")
        self.sort_ok("--no-PG", "-o", out, *options, self.write("local.bam", content))
        return bytes_of(out)

    def assert_refused(self, result, url, *words):
        """One error, in one line, that names the URL."""
        self.assertEqual(result.status, 1, result.err)
        lines = [line for line in result.err.splitlines() if line.startswith("samtools rocksort:")]
        self.assertEqual(len(lines), 1, result.err)
        for word in (f"'{url}'", *words):
            self.assertIn(word, lines[0])
        self.assertNotIn("Success", result.err)


@unittest.skipUnless(object_server.ThreadedMotoServer, "moto is not installed")
class Objects(UrlTest):
    """Objects of S3."""

    def setUp(self):
        super().setUp()
        self.server = server(object_server.ObjectServer)
        self.make_bucket()
        self.env = {**UrlTest.env, "HTS_S3_HOST": self.server.host, "HTS_S3_ADDRESS_STYLE": "path",
                    "AWS_ACCESS_KEY_ID": object_server.KEY, "AWS_SECRET_ACCESS_KEY": "secret"}

    def make_bucket(self):
        self.bucket = f"bucket-{next(NUMBERS)}"
        self.url = f"s3+http://{self.bucket}/"
        self.server.put(f"/{self.bucket}", b"")

    def run_urls(self, *args, **how):
        return self.rocksort("--no-PG", *args, env={**self.env, **how.pop("env", {})}, **how)

    def run_ok(self, *args, **how):
        result = self.run_urls(*args, **how)
        self.assertEqual(result.status, 0, result.err)
        return result

    def object(self, name):
        return self.server.get(f"/{self.bucket}/{name}")

    def put(self, name, content):
        self.server.put(f"/{self.bucket}/{name}", content)

    def test_input_and_output(self):
        expected = self.sorted_here(self.large)
        self.assertGreater(len(expected), 10 * MIB)
        self.put("in.bam", self.large)
        for budget in (None, 2 * MIB):
            with self.subTest(budget=budget):
                self.run_ok("-o", self.url + "out.bam", self.url + "in.bam", budget=budget)
                self.assertEqual(bamfile.parse_file(self.object("out.bam")),
                                 bamfile.parse_file(expected))
                parts = [r for r in self.server.requests if "partNumber" in r]
                self.assertGreaterEqual(len(parts), 2)
                self.server.reset()

    @needs_pysam
    def test_index_is_an_object(self):
        self.put("in.bam", self.small)
        self.run_ok("--write-index", "-o", self.url + "out.bam", self.url + "in.bam")
        self.run_ok("--write-index", "-o", f"{self.url}two.bam##idx##{self.url}two.bai",
                    self.url + "in.bam")
        out = self.write("out.bam", self.object("out.bam"))
        self.write("out.bam.csi", self.object("out.bam.csi"))
        reference_ok("view", "-c", "-o", self.path("count"), out, "c:1-4000")
        starts = [bamfile.fields(raw)[1] for raw in bamfile.split(bamfile.read(out).records)]
        self.assertEqual(int(text_of(self.path("count"))), sum(start < 4000 for start in starts))
        self.assertEqual(self.object("two.bai")[:4], b"BAI\1")

    @needs_pysam
    def test_cram_and_its_index(self):
        refs = generate.reference()
        fasta = self.write("ref.fa", generate.fasta(refs))
        args = ("-O", "cram", "--reference", fasta, "--write-index", "-o", self.url + "out.cram",
                self.write("in.sam", generate.reads(300, refs)))
        self.run_ok(*args)
        self.assertEqual(self.object("out.cram")[:4], b"CRAM")
        self.assertEqual(self.object("out.cram.crai")[:2], b"\x1f\x8b")
        for number, (word, fault) in enumerate((
                ("crai?uploads", 500), ("crai?uploads", "close"), ("crai?uploadId", 500),
                ("crai?uploadId", (200, object_server.ERROR)))):
            with self.subTest(word=word, fault=fault):
                self.server.fault = at("POST", word, fault)
                url = f"{self.url}{number}.cram"
                self.assert_refused(self.run_urls(*args[:-2], url, args[-1]), url + ".crai")
                self.assertNotIn(f"{number}.cram.crai", self.server.names(self.bucket))

    @needs_pysam
    def test_cram_that_fails(self):
        """Its index, which is known earlier, is no object either. Another thread sends parts."""
        for method, word in (("POST", "cram?uploads"), ("PUT", "cram?partNumber=1"),
                             ("POST", "cram?uploadId")):
            with self.subTest(word=word):
                self.server.reset()
                self.server.fault = at(method, word, 500)
                result = self.run_urls("-O", "cram,no_ref=1", "--write-index", "-o",
                                       self.url + "out.cram", self.write("in.bam", self.large))
                self.assert_refused(result, self.url + "out.cram", "500")
                self.assertEqual(self.server.names(self.bucket), [])
                self.assertEqual(self.server.uploads(self.bucket), [])

    def test_several_inputs_and_merge(self):
        self.put("a.bam", self.small)
        self.put("b.bam", self.small)
        both = [self.url + "a.bam", self.url + "b.bam"]
        self.run_ok("-o", self.url + "all.bam", *both)
        for name in "ab":
            self.run_ok("-o", f"{self.url}{name}.sorted.bam", f"{self.url}{name}.bam")
        self.run_ok("--merge", "-o", self.url + "merged.bam", self.url + "a.sorted.bam",
                    self.url + "b.sorted.bam")
        self.assertEqual(len(bamfile.split(bamfile.parse_file(self.object("all.bam")).records)),
                         4000)
        self.assertEqual(bamfile.parse_file(self.object("merged.bam")).records,
                         bamfile.parse_file(self.object("all.bam")).records)

    def test_names_and_credentials(self):
        self.put("in.bam", self.small)
        local = self.write("in.bam", self.small)
        wrong = {"AWS_ACCESS_KEY_ID": "another"}
        nowhere = {"HTS_S3_HOST": "127.0.0.1:9"}
        source, target = self.url + "in.bam", self.url + "x.bam"
        for output, source, env, url, words in (
                ("x.bam", self.url + "no.bam", {}, self.url + "no.bam", ["No such file"]),
                ("x.bam", source, wrong, source, ["Permission denied"]),
                ("x.bam", source, nowhere, source, ["refused"]),
                ("s3+http://bucket-no/x.bam", local, {}, "s3+http://bucket-no/x.bam",
                 ["404", "name"]),
                (target, local, wrong, target, ["403", "credentials"]),
                (target, local, nowhere, target, ["connect"])):
            with self.subTest(output=output, source=source, env=env):
                result = self.run_urls("-o", output, source, env=env)
                self.assert_refused(result, url, *words)
                self.assertEqual(len(result.err.splitlines()), 1, result.err)
                self.assertFalse(os.path.exists(self.path("x.bam")))
        self.assertEqual(self.server.names(self.bucket), ["in.bam"])

    def test_uploads_that_fail(self):
        local = self.write("in.bam", self.large)
        error = object_server.ERROR
        for step, method, word, faults in (
                ("begin", "POST", "?uploads", (500, "close", (500, b""), (200, error))),
                ("part", "PUT", "partNumber=1", (500, "close", (301, error))),
                ("last part", "PUT", "partNumber=2", (500, "close", (200, b""))),
                ("complete", "POST", "?uploadId",
                 (500, "close", (301, error), (500, b""), (200, b""), (200, error)))):
            for fault in faults:
                with self.subTest(step=step, fault=fault):
                    self.server.reset()
                    self.server.fault = at(method, word, fault)
                    result = self.run_urls("-o", self.url + "out.bam", local)
                    status = fault[0] if isinstance(fault, tuple) else fault
                    words = [str(status)] if status in (301, 500) else []
                    self.assert_refused(result, self.url + "out.bam", *words)
                    self.assertEqual(self.server.names(self.bucket), [])
                    self.assertEqual(self.server.uploads(self.bucket), [])

    def test_two_outputs(self):
        """--also: an object beside a file, a file beside an object, two objects."""
        local = self.write("in.bam", self.small)
        want = bamfile.parse_file(self.sorted_here(self.small))
        for first, second in ((self.url + "a.bam", self.path("b.bam")),
                              (self.path("b.bam"), self.url + "a.bam"),
                              (self.url + "a.bam", self.url + "b.bam")):
            with self.subTest(first=first, second=second):
                self.run_ok("-o", first, "--also", second, local)
                self.assertEqual(bamfile.parse_file(self.object("a.bam")), want)
                if self.path("b.bam") in (first, second):
                    self.assertEqual(bamfile.read(self.path("b.bam")), want)
                    os.unlink(self.path("b.bam"))
                else:
                    self.assertEqual(bamfile.parse_file(self.object("b.bam")), want)

    def test_two_outputs_that_fail(self):
        """Of two outputs that are objects, or one of which is one, none is there if one fails. Only
        if the first one fails when it is completed, which comes last, the second one is there."""
        local = self.write("in.bam", self.large)
        for step, method, word, faults in (
                ("begin", "POST", "{}?uploads", (500, "close")),
                ("part", "PUT", "{}?partNumber=1", (500, "close")),
                ("complete", "POST", "{}?uploadId", (500, (200, object_server.ERROR)))):
            for fault, failing, other in itertools.product(faults, "ab", ("object", "file")):
                self.make_bucket()
                names = {name: self.url + name + ".bam" for name in "ab"}
                if other == "file":
                    names["b" if failing == "a" else "a"] = self.path("file.bam")
                with self.subTest(step=step, fault=fault, failing=failing, other=other):
                    self.server.reset()
                    self.server.fault = at(method, word.format(failing + ".bam"), fault)
                    result = self.run_urls("-o", names["a"], "--also", names["b"], local)
                    self.assert_refused(result, names[failing])
                    left = (step, failing, other) == ("complete", "a", "object")
                    self.assertEqual(self.server.names(self.bucket), ["b.bam"] if left else [])
                    # Where htslib would crash, the process ends: the other upload stays begun.
                    ends = (step, fault, failing, other) == ("begin", "close", "b", "object")
                    self.assertEqual(self.server.uploads(self.bucket), ["a.bam"] if ends else [])
                    self.assertFalse(os.path.exists(self.path("file.bam")))

    def test_no_half_object_when_the_sort_fails(self):
        """htslib completes an upload also when it is closed without success. The temporary data
        are cut when the first part is sent."""
        def cut(method, path):
            if method == "PUT" and "partNumber=1&" in path:
                for each in self.scratch.rglob("*.sst"):
                    os.truncate(each, 1000)

        self.server.fault = cut
        result = self.run_urls("-T", str(self.scratch), "-o", self.url + "out.bam",
                               self.write("in.bam", self.large), budget=2 * MIB)
        self.assertEqual(result.status, 1, result.err)
        self.assertIn("temporary", result.err)
        self.assertTrue([r for r in self.server.requests if r.startswith("PUT")])
        self.assertEqual(self.server.names(self.bucket), [])
        self.assertEqual(self.server.uploads(self.bucket), [])

    def test_reference_that_ends_before_a_read_is_found_before_the_upload(self):
        sq = "@HD\tVN:1.6\n@SQ\tSN:c\tLN:9000\n"
        read = f"q\t0\tc\t5000\t9\t10M\t*\t0\t0\t{'ACGTACGTAC'}\t*\n"
        result = self.run_urls("-O", "cram", "--reference", self.write("r.fa", ">c\nACGTACGTAC\n"),
                               "-o", self.url + "out.cram", self.write("in.sam", sq + read))
        self.assertEqual(result.status, 1, result.err)
        self.assertEqual(self.server.names(self.bucket), [])
        self.assertEqual(self.server.uploads(self.bucket), [])

    def test_index_that_cannot_be_written(self):
        local = self.write("in.bam", self.small)
        self.server.fault = at("POST", "csi?uploads", 500)
        result = self.run_urls("--write-index", "-o", self.url + "out.bam", local)
        self.assert_refused(result, self.url + "out.bam.csi", "500")
        self.assertNotIn("out.bam.csi", self.server.names(self.bucket))

    def test_silent_server(self):
        self.put("in.bam", self.small)
        local = self.write("local.bam", self.small)
        for args, url, fault in (
                (("-o", "x.bam", self.url + "in.bam"), "in.bam", at("GET", "in.bam", "stall", 1)),
                (("-o", self.url + "out.bam", local), "out.bam", at("POST", "?uploads", "stall")),
                (("-o", self.url + "out.bam", local), "out.bam", at("PUT", "partNumber", "stall"))):
            with self.subTest(url=url):
                self.server.reset()
                self.server.fault = fault
                result = self.run_urls(*args, env=SOON_SILENT, limit_s=STALL_LIMIT_S)
                self.assert_refused(result, self.url + url)
                self.assertFalse(os.path.exists(self.path("x.bam")))
        self.assertEqual(self.server.names(self.bucket), ["in.bam"])


class Web(UrlTest):
    """Files of a web server."""

    def setUp(self):
        super().setUp()
        self.server = server(object_server.WebServer)
        self.server.files.clear()
        self.server.with_range = True
        self.url = f"http://{self.server.host}/"

    def run_urls(self, *args, **how):
        return self.rocksort("--no-PG", *args, env=self.env, **how)

    def test_with_and_without_ranges(self):
        expected = self.sorted_here(self.small)
        self.server.files["/in.bam"] = self.small
        for self.server.with_range in (True, False):
            with self.subTest(with_range=self.server.with_range):
                result = self.run_urls("-o", "out.bam", self.url + "in.bam")
                self.assertEqual(result.status, 0, result.err)
                self.assertEqual(bytes_of(self.path("out.bam")), expected)

    def test_high_verbosity_shows_what_is_sent(self):
        """For who looks for a fault, htslib shows what is sent."""
        self.server.files["/in.bam"] = self.small
        result = self.run_urls("--verbosity", "8", "-o", "out.bam", self.url + "in.bam")
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("GET /in.bam", result.err)

    def test_output_is_put_to_a_web_server(self):
        result = self.run_urls("-o", self.url + "out.bam", self.write("in.bam", self.small))
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(self.server.files["/out.bam"], self.sorted_here(self.small))

    @needs_pysam
    def test_reference_is_read_from_a_web_server(self):
        refs = generate.reference()
        reads = generate.reads(200, refs)
        fasta = self.write("ref.fa", generate.fasta(refs))
        reference_ok("faidx", fasta)
        for name in ("ref.fa", "ref.fa.fai"):
            self.server.files["/" + name] = bytes_of(self.path(name))
        result = self.run_urls("-O", "cram", "--reference", self.url + "ref.fa", "-o", "out.cram",
                               self.write("in.sam", reads))
        self.assertEqual(result.status, 0, result.err)
        for name, fault in (("ref.fa", 404), ("ref.fa.fai", 404), ("ref.fa.fai", "close")):
            with self.subTest(name=name, fault=fault):
                self.server.fault = at("GET", name, fault)
                self.assert_refused(
                    self.run_urls("-O", "cram", "--reference", self.url + "ref.fa", "-o", "x.cram",
                                  self.path("in.sam")), self.url + name)
                self.assertFalse(os.path.exists(self.path("x.cram")))
        text = reference_view(self.path("out.cram"), "-T", fasta)
        self.assertEqual(sorted(line.split("\t")[9] for line in sam_split(text)[1]),
                         sorted(line.split("\t")[9] for line in sam_split(reads)[1]))

    def test_faults_of_the_server_are_errors(self):
        self.server.files["/in.bam"] = self.large
        local = self.write("local.bam", self.large)
        for args, name, fault in (
                (("-o", "x.bam", self.url + "in.bam"), "in.bam", at("GET", "in.bam", 500)),
                (("-o", "x.bam", self.url + "in.bam"), "in.bam", at("GET", "in.bam", "close")),
                (("-o", self.url + "out.bam", local), "out.bam", at("PUT", "out.bam", 500)),
                (("-o", self.url + "out.bam", local), "out.bam", at("PUT", "out.bam", "close"))):
            with self.subTest(args=args[1], fault=name):
                self.server.reset()
                self.server.fault = fault
                self.assert_refused(self.run_urls(*args), self.url + name)
                self.assertFalse(os.path.exists(self.path("x.bam")))
        self.assertEqual(list(self.server.files), ["/in.bam"])

    def test_put_that_is_redirected(self):
        """libcurl sends nothing to another place after 303; without a place, it is done at once."""
        local = self.write("local.bam", self.small)
        self.server.files["/elsewhere"] = b"hello"
        for fault in ((301, b""), (303, b"", ("Location", "/elsewhere"))):
            with self.subTest(fault=fault):
                self.server.fault = at("PUT", "out.bam", fault)
                self.assert_refused(self.run_urls("-o", self.url + "out.bam", local),
                                    self.url + "out.bam")
        self.assertEqual(list(self.server.files), ["/elsewhere"])


@unittest.skipIf(test_spindle.reason_to_skip(), test_spindle.reason_to_skip())
class Mounted(test_spindle.SpindleTest):
    """Temporary data on FUSE, as on a mounted bucket."""

    def test_mounted_bucket_for_temporary_data_is_warned_of(self):
        source = self.write("in.bam", inputs()[1])
        result = self.sort_ok("-T", str(self.mount), "-o", self.path("x.bam"), source,
                              budget=2 * MIB)
        warnings = [line for line in result.err.splitlines() if "warning" in line]
        self.assertEqual(len(warnings), 1, result.err)
        for word in (str(self.mount), "FUSE", "object store", "-T"):
            self.assertIn(word, warnings[0])
        result = self.sort_ok("-o", self.path("x.bam"), source, budget=2 * MIB)
        self.assertNotIn("FUSE", result.err)


class Places(CliTest):
    """Temporary data stay on this machine."""

    def test_url_as_place(self):
        for url in ("s3://bucket/tmp", "https://host/tmp"):
            result = self.rocksort("-T", url, "-o", "x.bam", self.write("in.sam", "@HD\tVN:1.6\n"))
            self.assert_error(result, "-T", url, "this machine")
