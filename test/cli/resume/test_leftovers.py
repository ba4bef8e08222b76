"""The next sort of the same input, or to the same output, says what a killed sort left."""

import os
import shutil
import subprocess

import generate
from harness import SAMTOOLS, SPILL_BUDGET, own_lines, wait_for
from checkpoints import APPEAR_LIMIT_S, ResumeTest


class Leftovers(ResumeTest):
    """A killed sort cannot say what it left; the next sort of the same input or output does."""

    def said(self, *args, source, **how):
        """The lines about earlier sorts that a sort prints; it must succeed."""
        how.setdefault("budget", SPILL_BUDGET)
        result = self.sort_ok("-T", self.where, *args, source, clean=False, **how)
        return [line for line in own_lines(result.err) if "earlier" in line]

    def test_sort_of_the_same_input_names_what_was_left(self):
        source = self.source()
        (checkpoint,), _ = self.killed_in_merge(source, stdin=subprocess.DEVNULL)
        line, = self.said("-o", self.path("other.bam"), source=source)
        self.assertIn(f"sort to '{self.path('fifo')}'", line)
        self.assertTrue(line.endswith(f"to write it: samtools rocksort --resume {checkpoint}"),
                        line)
        # Not said with --quiet, other inputs, no temporary data, or another directory.
        other = self.bam_of(generate.odd(9000, seed=99), name="other-input.bam")
        elsewhere = self.work / "elsewhere"
        elsewhere.mkdir()
        self.assertEqual(self.said("--quiet", "-o", self.path("o.bam"), source=source), [])
        self.assertEqual(self.said("-o", self.path("o.bam"), source=other), [])
        self.assertEqual(self.said("-o", self.path("o.bam"), source=source, budget=None), [])
        result = self.sort_ok("-T", elsewhere, "-o", self.path("o.bam"), source, clean=False,
                              budget=SPILL_BUDGET)
        self.assertNotIn("earlier", result.err)
        self.resume(checkpoint, "-o", self.path("out.bam"))
        self.assertEqual(self.said("-o", self.path("o.bam"), source=source), [])

    def test_sort_to_the_same_output_names_what_was_left(self):
        """A killed sort of a pipe left its data beside the output, which has an index. The next
        sort names the same output with a relative path, and says how to write the part that is
        left."""
        sam = generate.odd(20000, seed=98).encode()
        out = self.path("out.bam")
        process = self.start("--no-PG", "--write-index", "-o", out, budget=SPILL_BUDGET)
        writer = self.feed(process, sam)
        checkpoint, = wait_for(lambda: [path for path in self.checkpoints(self.work)
                                        if os.path.exists(path + "/STORE")], APPEAR_LIMIT_S,
                               "a checkpoint")
        # Not said while the other sort still runs.
        other = self.sort_ok("-o", out, self.source(), clean=False, budget=SPILL_BUDGET)
        self.assertNotIn("earlier", other.err)
        process.kill()
        process.wait()
        writer.join(5)
        again = self.sort_ok("-o", "out.bam", self.source(), clean=False, budget=SPILL_BUDGET,
                             cwd=self.work)
        line, = [line for line in own_lines(again.err) if "earlier" in line]
        self.assertIn(f"sort to '{out}' has left", line)
        self.assertTrue(line.endswith(f"samtools rocksort --resume {checkpoint} --partial"), line)
        shutil.rmtree(checkpoint)

    def test_pipes_are_never_the_same(self):
        """Two samples come through the same file descriptor, as with <(...) of the shell. The
        second sort does not mention what -k kept of the first sample."""
        for sample in ("a", "b"):
            sam = self.path(f"{sample}.sam")
            with open(sam, "w", encoding="ascii") as file:
                file.write(generate.odd(9000, seed=ord(sample)))
            script = f'"$@" -o {sample}.bam /dev/fd/9 9< <(cat {sam})'
            result = self.run_program(
                ["bash", "-c", script, "bash", SAMTOOLS, "rocksort", "-k", "-T", self.where],
                budget=SPILL_BUDGET)
            self.assertEqual(result.status, 0, result.err)
            self.assertNotIn("earlier", result.err)
        for checkpoint in self.checkpoints():
            shutil.rmtree(checkpoint)

    def test_checkpoint_in_several_directories_is_named_once(self):
        source = self.source()
        places = [self.where, self.work / "more"]
        places[1].mkdir()
        options = [word for place in places[1:] for word in ("-T", place)]
        _, _ = self.killed_in_merge(*options, source, stdin=subprocess.DEVNULL)
        checkpoints = self.checkpoints(*places)
        self.assertEqual(len(checkpoints), 2)
        line, = self.said("-T", self.where, *options, "-o", self.path("o.bam"), source=source)
        self.assertIn("--resume", line)
        self.resume(checkpoints[0], "-o", self.path("out.bam"))
