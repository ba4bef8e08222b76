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
        data = dataclasses.replace(self.case.data, **changes)
        return self.propose(dataclasses.replace(self.case, data=data))

    def run(self):
        """Repeats all passes until nothing changes; returns the smallest case."""
        before = None
        while before != self.case and not self.out_of_time():
            before = self.case
            for one_pass in (self.drop_records, self.simplify_settings, self.drop_options,
                             self.drop_lines, self.drop_twists, self.drop_tags,
                             self.drop_refs, self.simplify_records, self.shorten_names):
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
        self.drop_from(self.case.options, lambda options: self.propose(
            dataclasses.replace(self.case, options=options)))

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
        for changes in ({"budget": None}, {"pipe": False}, {"way_in": "bam"}, {"way_in": "sam"},
                        {"way_out": "bam"}, {"out_by": "option"}, {"salt": 0},
                        {"fixmate": "" if self.case.fixmate else None}):
            if changes == {"way_in": "bam"} and self.case.way_in == "sam":
                continue
            self.propose(dataclasses.replace(self.case, **changes))

    def drop_twists(self):
        """SAM text without twists."""
        self.propose_data(line_end="\n")
        self.propose_data(tail="")
        self.change_all(lambda record: {"texts": {}})
        for column in sorted({i for record in self.case.data.records for i in record.texts}):
            self.change_all(lambda record, column=column: {
                "texts": {i: text for i, text in record.texts.items() if i != column}})

    def drop_refs(self):
        """Fewer references: those that no record uses."""
        data = self.case.data
        used = sorted({tid for record in data.records for tid in (record.tid, record.mate[0])
                       if tid >= 0})
        place = {tid: i for i, tid in enumerate(used)} | {-1: -1}
        lines = [line for line in data.header if line.startswith("@SQ")]
        kept = {id(lines[tid]) for tid in used if lines}
        header = [line for line in data.header
                  if not line.startswith("@SQ") or id(line) in kept]
        records = [dataclasses.replace(record, tid=place[record.tid],
                                       mate=(place[record.mate[0]], *record.mate[1:]))
                   for record in data.records]
        self.propose_data(header=header, refs=[data.refs[tid] for tid in used], records=records)

    def drop_tags(self):
        """Fewer tags: by name from all records, then one by one."""
        names = sorted({tag[0] for record in self.case.data.records for tag in record.tags})
        for name in names:
            self.change_all(lambda record, name=name: {
                "tags": [tag for tag in record.tags if tag[0] != name]})
        if len(self.case.data.records) <= FEW_RECORDS:
            for i, record in enumerate(self.case.data.records):
                self.drop_from(record.tags, lambda tags, i=i: self.change_one(
                    i, lambda record: {"tags": tags}))

    def simplify_records(self):
        """Simple values of the fields, in all records and then one by one."""
        changes = [lambda record, field=field, value=value: {field: value}
                   for field, value in (("qual", None), ("mapq", 0), ("cigar", []), ("bin", None),
                                        ("mate", (-1, -1, 0)), ("tid", -1), ("pos", -1),
                                        ("pos", 0))]
        changes.append(lambda record: {"tid": -1, "pos": -1, "mate": (-1, -1, 0)})
        changes += [lambda record: {"seq": "", "qual": None},
                    lambda record: {"mate": (record.mate[0], 0, 0)},
                    lambda record: {"tags": [shorter_tag(tag) for tag in record.tags]}]
        changes += [lambda record, bit=bit: {"flag": record.flag & ~(1 << bit)}
                    for bit in range(16)]
        for change in changes:
            if not self.change_all(change) and len(self.case.data.records) <= FEW_RECORDS:
                for i in range(len(self.case.data.records)):
                    self.change_one(i, change)

    def shorten_names(self):
        """Names without their first or last characters, or no names at all."""
        for change in (lambda name: "a", lambda name: name[: (len(name) + 1) // 2],
                       lambda name: name[len(name) // 2 :], lambda name: name[1:] or name,
                       lambda name: name[:-1] or name):
            def renamed(record, change=change):
                name = change(record.name)
                return {"name": record.name if name.startswith("@") else name}
            if not self.change_all(renamed) and len(self.case.data.records) <= FEW_RECORDS:
                for i in range(len(self.case.data.records)):
                    self.change_one(i, renamed)

    def change_all(self, change):
        return self.propose_data(records=[dataclasses.replace(record, **change(record))
                                          for record in self.case.data.records])

    def change_one(self, i, change):
        """Proposes the current case with one record changed."""
        records = list(self.case.data.records)
        records[i] = dataclasses.replace(records[i], **change(records[i]))
        return self.propose_data(records=records)


def shorter_tag(tag):
    """The tag with half of its text or array, or with half the number."""
    name, kind, value = tag
    if kind[0] == "B":
        return name, kind, value[: (len(value) + 1) // 2]
    if kind == "Z":
        return name, kind, value[: (len(value) + 1) // 2]
    return tag
