"""scripts/check-rooms.py: each kind of fault is found in a small tree where it was planted, and a
tree without faults passes."""

import os
import shutil
import subprocess
import sys

from harness import ROOT, CliTest

# A tree that passes: `order` may include `bam` and `util`, and uses a function of each.
CLEAN = {
    "bam_sort_key.h": '#include "util/diag.h"\n',
    "src/util/diag.h": "void diag(void);\n",
    "src/util/diag.c": '#include "util/diag.h"\nvoid diag(void) {}\n',
    "src/bam/bam_aux.h": "void bam_aux(void);\n",
    "src/bam/bam_aux.c": '#include "bam/bam_aux.h"\n#include "util/diag.h"\n'
                         "void bam_aux(void)\n{\n    diag();\n}\n",
    "src/order/slice_merge.h": '#include "bam_sort_key.h"\nvoid merge(void);\n',
    "src/order/slice_merge.c": '#include "order/slice_merge.h"\n#include <stdlib.h>\n'
                         '#include "bam/bam_aux.h"\n'
                         "void merge(void)\n{\n    bam_aux();\n    free(malloc(1));\n}\n",
}


class Rooms(CliTest):
    """The files of a test are CLEAN with some changed or added."""

    def check(self, changes=None, compiled=(), options=()):
        """(exit status, lines of messages) of the script on CLEAN with changes."""
        tree, objects = self.work / "tree", self.work / "objects"
        for name, text in {**CLEAN, **(changes or {})}.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        if compiled is not None:
            for path in tree.rglob("*.c"):
                target = (objects / path.relative_to(tree)).with_suffix(".o")
                target.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run([os.environ.get("CC", "cc"), f"-I{tree}", f"-I{tree}/src",
                                f"-I{path.parent}", "-c", path, "-o", target], check=True)
            options = ["--objects", objects, *options]
        done = self.run_program([sys.executable, "-B", ROOT / "scripts/check-rooms.py",
                                 "--root", tree, *options])
        return done.status, done.err.splitlines()

    def test_clean_tree_passes(self):
        self.assertEqual(self.check(), (0, []))

    def test_fault_of_one_file_is_named(self):
        """A file at the top follows the rules of its room."""
        for name, text, message in (
                ("src/util/path.c", '#include "util/diag.h"\n\n#include "bam/bam_aux.h"\n',
                 '3: util may not include bam ("bam/bam_aux.h")'),
                ("src/bam/other.h", '#include "bam_sort_key.h"\n',
                 '1: bam may not include order ("bam_sort_key.h")'),
                ("src/bam/other.c", '# include "bam_aux.h"\n',
                 '1: "bam_aux.h" names no room and header of it'),
                ("src/bam/other.c", '#include "bam/gone.h"\n',
                 '1: "bam/gone.h" names no room and header of it'),
                *((name, "int x;\n", " lies in no room") for name in (
                    "src/alone.c", "top.c", "src/cellar/wine.c", "src/bam/deep/er.c"))):
            with self.subTest(name=name, message=message):
                self.assertEqual(self.check({name: text}, compiled=None),
                                 (1, [f"{name}:{message}"]))
                (self.work / "tree" / name).unlink()

    def test_circles_of_includes_and_calls_are_found(self):
        """Through variables, too, but not through pointers, nor where a file puts its malloc in
        front of the C library's."""
        one_of_two = "int one(void);\nint shared;\nint two(void)\n{\n    return one();\n}\n"
        pointer = "void one(void (*job)(void));\nvoid two(void)\n{\n    one(two);\n}\n"
        front = "\n".join(["#include <stddef.h>", "void diag(void);",
                           "void *malloc(size_t n)\n{\n    diag();\n    return (void *)n;\n}",
                           "int fsync(int fd)\n{\n    return fd;\n}\n"])
        for files, how in (
                ({"one.h": '#include "bam/two.h"\n', "two.h": "",
                  "two.c": '#include "bam/two.h"\n#include "bam/one.h"\n'}, "include"),
                ({"one.c": "void two(void);\nvoid one(void)\n{\n    two();\n}\n",
                  "two.c": "void one(void);\nvoid two(void)\n{\n    one();\n}\n"}, "call"),
                ({"one.c": "extern int shared;\nint one(void)\n{\n    return shared;\n}\n",
                  "two.c": one_of_two}, "call"),
                ({"one.c": "void one(void (*job)(void))\n{\n    job();\n}\n",
                  "two.c": pointer}, None),
                ({"../os/interpose.c": front, "../util/diag.c": (
                    "#include <stdlib.h>\n#include <unistd.h>\n"
                    "void diag(void)\n{\n    free(malloc(1));\n    fsync(0);\n}\n")}, None)):
            with self.subTest(files=list(files), how=how):
                for folder in ("tree", "objects"):
                    shutil.rmtree(self.work / folder, ignore_errors=True)
                (self.work / "tree/src/bam").mkdir(parents=True)
                said = [f"bam/one, bam/two: {how} each other in a circle"] if how else []
                self.assertEqual(self.check({f"src/bam/{name}": text for name, text in
                                             files.items()}), (len(said), said))

    def test_call_of_a_room_that_may_not_be_included_is_named(self):
        self.assertEqual(self.check({"src/util/path.c": "void bam_aux(void);\nvoid path(void)\n"
                                                        "{\n    bam_aux();\n}\n"}),
                         (1, ["util/path: calls bam/bam_aux, which its room may not include"]))

    def test_missing_object_file_is_a_failure(self):
        (self.work / "empty").mkdir()
        status, lines = self.check(compiled=None, options=["--objects", self.work / "empty"])
        self.assertEqual(status, 1)
        self.assertIn("build first", "\n".join(lines))
