"""The inputs and outputs of bench-2014.py: makes, keeps, checks and compares them.

Facts about an input are kept beside it in a .json file, since a pass over 37 M records takes two
minutes. Outputs are checked after all runs, two at a time; outputs that are equal are checked once.
"""

import concurrent.futures
import hashlib
import json
import os
import re

from compare import compare_content, rocksort_checksum, scan
from measure import BenchError, progress, simulate

CHECK_THREADS = 2


class Input:
    """A BAM whose `facts` (records, raw_bytes, checksum, scan) are kept in a file."""

    def __init__(self, path, facts_path, rocksort, threads):
        self.path, self.facts_path = path, facts_path
        self.facts = self.load()
        if not self.facts:
            self.look(rocksort, threads)
        self.raw_bytes = self.facts["raw_bytes"]

    def stamp(self):
        st = os.stat(self.path)
        return [st.st_size, st.st_mtime_ns]

    def load(self):
        """The facts that an earlier run wrote, if they are about the same file."""
        try:
            with open(self.facts_path, encoding="utf-8") as f:
                facts = json.load(f)
        except (OSError, ValueError):
            return None
        return facts if facts.get("stamp") == self.stamp() else None

    def look(self, rocksort, threads):
        checksum = rocksort_checksum(rocksort, threads, self.path)
        match = re.fullmatch(r"\S+ records:(\d+) bytes:(\d+)", checksum)
        if not match:
            raise BenchError("%s: rocksort --checksum-only says: %s" % (self.path, checksum))
        self.facts = {"stamp": self.stamp(), "checksum": checksum, "records": int(match[1]),
                      "raw_bytes": int(match[2]), "scan": None}
        self.keep()

    def keep(self):
        try:
            with open(self.facts_path, "w", encoding="utf-8") as f:
                json.dump(self.facts, f)
        except OSError:
            pass  # the user's input, in a directory where we may not write

    def scanned(self):
        """The facts with bamcheck.py's result, for compare_content()."""
        if not self.facts["scan"]:
            self.facts["scan"] = scan(self.path)
            self.keep()
        return dict(self.facts["scan"], checksum=self.facts["checksum"])

    def said(self):
        return {"name": os.path.basename(self.path), "bytes": os.stat(self.path).st_size,
                "records": self.facts["records"], "raw_bytes": self.raw_bytes}


def find_input(wanted, n_records, folder, rocksort, threads):
    """The user's file, or a simulated one, which is made if it does not exist."""
    if wanted:
        if not os.path.isfile(wanted):
            raise BenchError("no file %s" % wanted)
        path = os.path.abspath(wanted)
    else:
        path = os.path.join(os.path.abspath(folder), "simulated-%d.bam" % n_records)
        if not os.path.exists(path):
            make_input(path, n_records, folder)
    return Input(path, path + ".json", rocksort, threads)


def make_input(path, n_records, folder):
    """Writes it under another name and renames it when it is complete."""
    own = os.path.join(folder, "making-%d" % os.getpid())
    os.mkdir(own)
    try:
        os.rename(simulate("bench-2014", n_records, own), path)
    finally:
        for name in os.listdir(own):
            os.unlink(os.path.join(own, name))
        os.rmdir(own)


class Outputs:
    """Keeps outputs until they are checked. `how`: full, content or none."""

    def __init__(self, rocksort, threads, how, folder):
        self.rocksort, self.threads, self.how = rocksort, threads, how
        self.folder = folder
        # By digest: the path of the kept output, and the results that have this output.
        self.waiting = {}

    def take(self, path, result, is_copy):
        """Copies are not checked: they are unsorted."""
        if self.how == "none" or is_copy or result["wrong"]:
            result["checked"] = None
            os.unlink(path)
            return
        with open(path, "rb") as f:
            digest = hashlib.file_digest(f, "blake2b").hexdigest()
        result["digest"] = digest[:32]
        if digest in self.waiting:
            os.unlink(path)
        else:
            os.makedirs(self.folder, exist_ok=True)
            self.waiting[digest] = (os.path.join(self.folder, digest[:32] + ".bam"), [])
            os.rename(path, self.waiting[digest][0])
        self.waiting[digest][1].append(result)

    def check_all(self, source):
        """Checks the kept outputs; sets `wrong` and `checked` of their results."""
        if not self.waiting:
            return
        progress("bench-2014: checking %d outputs" % len(self.waiting))
        want = source.scanned() if self.how == "full" else dict(source.facts)
        with concurrent.futures.ThreadPoolExecutor(CHECK_THREADS) as pool:
            jobs = [(pool.submit(self.check, path, want), path, results)
                    for path, results in self.waiting.values()]
            for job, path, results in jobs:
                wrong, checked = job.result()
                for result in results:
                    result["wrong"], result["checked"] = wrong, checked
                os.unlink(path)
        self.waiting = {}

    def check(self, path, want):
        """(what is wrong or None, how it was checked)."""
        checksum = rocksort_checksum(self.rocksort, self.threads, path)
        if self.how == "content":
            if checksum == want["checksum"]:
                return None, "content"
            return "other content: %s instead of %s" % (checksum, want["checksum"]), None
        return compare_content(want, dict(scan(path), checksum=checksum), None)
