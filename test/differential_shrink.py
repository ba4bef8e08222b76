"""Makes a failing case small: removes and simplifies all that the difference does not need.

Each pass proposes simpler cases. The first of them that still fails replaces the current case. The
passes are repeated until none helps, or the time is over.
"""

import dataclasses
import time

LIMIT_S = 60
FEW_RECORDS = 20


class Shrinker:
    """Has the smallest failing case so far; fails(case) says whether a case still fails."""

    SETTINGS = ({"budget": None}, {"pipe": False}, {"way_in": "bam"}, {"way_in": "sam"},
                {"way_out": "bam"}, {"out_by": "option"}, {"salt": 0}, {"fixmate": ""},
                {"fixmate": None})

    def __init__(self, case, fails, limit_s=LIMIT_S):
        self.case, self.fails = case, fails
        self.end = time.monotonic() + limit_s
        self.n_tries = 0

    def out_of_time(self):
        return time.monotonic() > self.end

    @staticmethod
    def can_be_said(case):
        """Whether the formats can express the case. What CRAM drops would look like a difference."""
        return "cram" not in (case.way_in, case.way_out) or all(
            record.name and (record.tid >= 0) == (record.pos >= 0) and (
                not record.flag & 4 or not record.cigar) for record in case.data.records)

    def propose(self, case):
        """Makes case the current one if it still fails; returns whether it did."""
        if case == self.case or self.out_of_time() or not self.can_be_said(case):
            return False
        self.n_tries += 1
        if not self.fails(case):
            return False
        self.case = case
        return True

    def propose_data(self, **changes):
        """Proposes the current case with changed members of its input."""
        return self.change(data=dataclasses.replace(self.case.data, **changes))

    def change(self, **changes):
        """Proposes the current case with changes."""
        return self.propose(dataclasses.replace(self.case, **changes))

    def passes(self):
        return (self.drop_records, self.simplify_settings, self.drop_options, self.drop_lines,
                self.drop_tags, self.simplify_records)

    def run(self):
        """Repeats all passes until nothing changes; returns the smallest case."""
        before = None
        while before != self.case and not self.out_of_time():
            before = self.case
            for one_pass in self.passes():
                one_pass()
        return self.case

    # Passes

    def drop_from(self, items, propose):
        """Proposes the list without one half, then without one quarter, and so on down to single
        items."""
        size = (len(items) + 1) // 2
        while size and not self.out_of_time():
            at = 0
            while at < len(items):
                fewer = items[:at] + items[at + size :]
                if propose(fewer):
                    items = fewer
                else:
                    at += size
            size = (size + 1) // 2 if size > 1 else 0

    def drop_records(self):
        self.drop_from(self.case.data.records, lambda records: self.propose_data(records=records))

    def drop_options(self):
        self.drop_from(self.case.options, lambda options: self.change(options=options))

    def drop_lines(self):
        """Fewer header lines, other than those of the references."""
        header = self.case.data.header
        refs = [line for line in header if line.startswith("@SQ")]
        others = [line for line in header if not line.startswith("@SQ")]

        def propose(lines):
            kept = set(map(id, lines)) | set(map(id, refs))
            return self.propose_data(header=[line for line in header if id(line) in kept])

        self.drop_from(others, propose)

    def simplify_settings(self):
        """The simplest formats of input and output, and no small budget."""
        for changes in self.SETTINGS:
            if changes == {"way_in": "bam"} and self.case.way_in == "sam" or (
                    changes == {"fixmate": ""} and self.case.fixmate is None):
                continue
            self.change(**changes)

    def drop_tags(self):
        """Fewer tags, by name."""
        for name in sorted({tag[0] for record in self.case.data.records for tag in record.tags}):
            self.change_each(lambda record, name=name: {
                "tags": [tag for tag in record.tags if tag[0] != name]})

    def simplify_records(self):
        """Usual lines, and simple values of the fields."""
        self.propose_data(line_end="\n", tail="")
        for values in ({"texts": {}}, {"qual": None}, {"mapq": 0}, {"cigar": []}, {"bin": None},
                       {"mate": (-1, -1, 0)}, {"seq": "", "qual": None}, {"name": "a"},
                       {"tid": -1, "pos": -1, "mate": (-1, -1, 0)}):
            self.change_each(lambda record, values=values: values)
        for bit in range(16):
            self.change_each(lambda record, bit=bit: {"flag": record.flag & ~(1 << bit)})

    def change_each(self, change):
        """Changes all records, or else those of a few that can be changed one by one."""
        if not self.change_all(change) and len(self.case.data.records) <= FEW_RECORDS:
            for i in range(len(self.case.data.records)):
                self.change_one(i, change)

    def change_all(self, change):
        return self.propose_data(records=[dataclasses.replace(record, **change(record))
                                          for record in self.case.data.records])

    def change_one(self, i, change):
        """Proposes the current case with one record changed."""
        records = list(self.case.data.records)
        records[i] = dataclasses.replace(records[i], **change(records[i]))
        return self.propose_data(records=records)
