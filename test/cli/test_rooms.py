"""scripts/check-rooms.py: each kind of fault is found in a small tree where it was planted, and a
tree without faults passes."""

import os
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

    def check_fault(self, changes, *messages, **more):
        """The script fails with these messages and no others."""
        self.assertEqual(self.check(changes, **more), (1, list(messages)))

    def test_clean_tree_passes(self):
        self.assertEqual(self.check(), (0, []))

    def test_only_include_lines_are_checked_without_objects(self):
        self.assertEqual(self.check(compiled=None), (0, []))

    def test_faults_of_include_lines_are_named(self):
        """A file at the top follows the rules of its room."""
        for name, text, message in (
                ("src/util/path.c", '#include "util/diag.h"\n\n#include "bam/bam_aux.h"\n',
                 '3: util may not include bam ("bam/bam_aux.h")'),
                ("src/bam/other.h", '#include "bam_sort_key.h"\n',
                 '1: bam may not include order ("bam_sort_key.h")'),
                ("src/bam/other.c", '# include "bam_aux.h"\n',
                 '1: "bam_aux.h" names no room and header of it'),
                ("src/bam/other.c", '#include "bam/gone.h"\n',
                 '1: "bam/gone.h" names no room and header of it')):
            with self.subTest(message):
                self.check_fault({name: text}, f"{name}:{message}", compiled=None)
                (self.work / "tree" / name).unlink()

    def test_file_in_no_room(self):
        for name in ("src/alone.c", "top.c", "src/cellar/wine.c", "src/bam/deep/er.c"):
            with self.subTest(name):
                self.check_fault({name: "int x;\n"}, f"{name}: lies in no room", compiled=None)
                (self.work / "tree" / name).unlink()

    def test_circle_by_include(self):
        self.check_fault({"src/bam/one.h": '#include "bam/two.h"\n',
                          "src/bam/two.h": "",
                          "src/bam/two.c": '#include "bam/two.h"\n#include "bam/one.h"\n'},
                         "bam/one, bam/two: include each other in a circle")

    def test_circle_by_call_is_found(self):
        self.check_fault({"src/bam/one.c": "void two(void);\nvoid one(void)\n{\n    two();\n}\n",
                          "src/bam/two.c": "void one(void);\nvoid two(void)\n{\n    one();\n}\n"},
                         "bam/one, bam/two: call each other in a circle")

    def test_circle_of_three(self):
        """One message for the whole circle, without those who only use it."""
        files = {f"src/bam/{name}.c": f"void {other}(void);\nvoid {name}(void)\n{{\n    {other}();"
                                      "\n}\n" for name, other in
                 (("one", "two"), ("two", "three"), ("three", "one"), ("user", "one"))}
        self.check_fault(files, "bam/one, bam/three, bam/two: call each other in a circle")

    def test_variable_of_another_file_counts_as_a_call(self):
        self.check_fault({"src/bam/one.c": "extern int shared;\nint one(void)\n{\n"
                                           "    return shared;\n}\n",
                          "src/bam/two.c": "int one(void);\nint shared;\nint two(void)\n{\n"
                                           "    return one();\n}\n"},
                         "bam/one, bam/two: call each other in a circle")

    def test_functions_of_the_c_library(self):
        """A file may put its malloc in front of the C library's. A call of malloc is no call of
        that file, though it calls the others."""
        front = "\n".join(["#include <stddef.h>", "void diag(void);",
                           "void *malloc(size_t n)\n{\n    diag();\n    return (void *)n;\n}",
                           "int fsync(int fd)\n{\n    return fd;\n}"])
        self.assertEqual(self.check({
            "src/machine/interpose.c": front + "\n",
            "src/util/diag.c": "#include <stdlib.h>\n#include <unistd.h>\n"
                               "void diag(void)\n{\n    free(malloc(1));\n    fsync(0);\n}\n"}),
            (0, []))

    def test_call_through_a_pointer_does_not_count(self):
        self.assertEqual(self.check({
            "src/bam/one.c": "void one(void (*job)(void))\n{\n    job();\n}\n",
            "src/bam/two.c": "void one(void (*job)(void));\n"
                             "void two(void)\n{\n    one(two);\n}\n"}),
            (0, []))

    def test_missing_object_file_is_a_failure(self):
        (self.work / "empty").mkdir()
        status, lines = self.check(compiled=None, options=["--objects", self.work / "empty"])
        self.assertEqual(status, 1)
        self.assertIn("build first", "\n".join(lines))

    def test_no_sources(self):
        done = self.run_program([sys.executable, "-B", ROOT / "scripts/check-rooms.py", "--root",
                                 self.scratch])
        self.assertEqual(done.status, 1)
        self.assertIn("there are no sources", done.err)
