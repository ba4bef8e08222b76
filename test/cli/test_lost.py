"""What a reviewer who set out to lose records found, mostly by resuming: one test a fault.

Loads are cut off by a library that kills at a certain call (test_faults.py)."""

import os
import signal
import unittest

import bamfile
from harness import SPILL_BUDGET
from test_faults import LIBRARY
from test_resume import ResumeTest


@unittest.skipUnless(os.access(LIBRARY, os.R_OK), f"no {LIBRARY}: make build/fault_inject.so")
class LostTest(ResumeTest):
    """Sorts that end at a certain call, with a store in `where`."""

    def faulty(self, fault):
        """The environment of a run with a fault."""
        return {"LD_PRELOAD": str(LIBRARY), "FAULT": fault,
                "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def killed(self, fault, *args, **how):
        """A sort that is killed at a call: returns its store."""
        how.setdefault("budget", SPILL_BUDGET)
        result = self.rocksort("--no-PG", "-T", self.where, *args, clean=False,
                               env=self.faulty(fault), **how)
        self.assertEqual(result.status, -signal.SIGKILL, result.err)
        store, = self.stores()
        return store

    def cut_load(self, *args, n_runs=3, **how):
        """A sort of a file that is killed when so many runs are durable."""
        store = self.killed(f"link:{n_runs + 1}:kill:.sst", *args, "-o", self.path("out.bam"), **how)
        self.assertEqual(self.state(store), "loading")
        return store


class Resumed(LostTest):
    """Stores that are resumed."""

    def test_part_and_then_all(self):
        """--partial let the store pass as one that has all: resumed again it gave the same part, with
        exit status 0."""
        source = self.source()
        want = self.sort_bam("--no-PG", source)
        for fault in (False, True):
            with self.subTest(fails=fault):
                store = self.cut_load(source)
                out = "/dev/full" if fault else self.path("part.bam")
                result = self.rocksort("--resume", store, "--partial", "-k", "-o", out, clean=False,
                                       budget=SPILL_BUDGET)
                self.assertEqual(result.status, fault, result.err)
                self.assertIn("warning: the output will have the first ", result.err)
                self.assertEqual(self.state(store), "loading")
                self.resume(store, "-o", self.path("out.bam"))
                self.assert_same_bam(bamfile.read(self.path("out.bam")), want)
