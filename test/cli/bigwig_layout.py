"""Reads a whole bigWig file by its trees, as the supplement of Kent et al. 2010 describes them, and
checks that its parts agree with each other."""

import struct
import zlib
from collections import namedtuple

MAGIC, NAMES_MAGIC, INDEX_MAGIC = 0x888FFC26, 0x78CA8C91, 0x2468ACE0

# refs: {name: length}. runs: [(name, begin, end, value)]. zooms: [(window, [summary])], a summary is
# (name, begin, end, bases, min, max, sum, sum of squares). total: (bases, min, max, sum, squares).
BigWig = namedtuple("BigWig", "refs runs zooms total")


def check(holds, what):
    if not holds:
        raise AssertionError(f"bigWig: {what}")


class Reader:
    def __init__(self, data):
        self.data = data
        (magic, version, n_zooms, names_at, data_at, index_at, _, _, _, total_at, self.most_bytes,
         _) = struct.unpack_from("<IHHQQQHHQQIQ", data)
        check((magic, version, data[-4:]) == (MAGIC, 4, data[:4]), "magic or version")
        names = self.names(names_at)
        self.name = {number: name for name, number, _ in names}
        zooms = []
        for i in range(n_zooms):
            window, _, zoom_at, zoom_index_at = struct.unpack_from("<IIQQ", data, 64 + 24 * i)
            zooms.append((window, self.level(zoom_at, zoom_index_at, True)))
        self.parsed = BigWig({name: n for name, _, n in names}, self.level(data_at, index_at, False),
                             zooms, struct.unpack_from("<Qdddd", data, total_at))

    def leaves(self, at, inner, leaf):
        """The items of all leaves; the key of an inner item is that of the leaves below."""
        is_leaf, _, n = struct.unpack_from("<BBH", self.data, at)
        form = leaf if is_leaf else inner
        items = [struct.unpack_from(form, self.data, at + 4 + i * struct.calcsize(form))
                 for i in range(n)]
        if is_leaf:
            return items
        found = []
        for item in items:
            below = self.leaves(item[-1], inner, leaf)
            key = below[0][:1] if len(item) == 2 else below[0][:2] + below[-1][2:4]
            check(item[:-1] == key, "key of an inner node")
            found += below
        return found

    def names(self, at):
        magic, _, key_bytes, _, n = struct.unpack_from("<IIIIQ", self.data, at)
        items = self.leaves(at + 32, f"<{key_bytes}sQ", f"<{key_bytes}sII")
        check(magic == NAMES_MAGIC and len(items) == n and items == sorted(items), "names")
        return [(name.rstrip(b"\0").decode(), number, length) for name, number, length in items]

    def level(self, data_at, index_at, is_zoom):
        """The items of all sections, which fill the file from data_at to index_at."""
        magic, _, n = struct.unpack_from("<IIQ", self.data, index_at)
        entries = self.leaves(index_at + 48, "<IIIIQ", "<IIIIQQ")
        check(magic == INDEX_MAGIC and len(entries) == n, "index")
        count_form = "<I" if is_zoom else "<Q"
        place, items = data_at + struct.calcsize(count_form), []
        for *extent, offset, n_bytes in entries:
            check(offset == place, "place of a section")
            place += n_bytes
            raw = zlib.decompress(self.data[offset:place])
            found = self.summaries(raw) if is_zoom else self.runs(raw)
            check(extent == [found[0][0], found[0][1], found[-1][0], found[-1][2]]
                  and len(raw) <= self.most_bytes, "extent of a section")
            items += found
        check(place == index_at, "end of the sections")
        count = struct.unpack_from(count_form, self.data, data_at)[0]
        check(count == (len(items) if is_zoom else n), "number of items")
        check(all((a[0], a[2]) <= b[:2] for a, b in zip(items, items[1:])), "order of items")
        return [(self.name[item[0]], *item[1:]) for item in items]

    @staticmethod
    def summaries(raw):
        return list(struct.iter_unpack("<IIIIffff", raw))

    @staticmethod
    def runs(raw):
        number, _, _, _, _, kind, _, n = struct.unpack_from("<IIIIIBBH", raw)
        check(kind == 1 and len(raw) == 24 + 12 * n, "section of runs")
        return [(number, *run) for run in struct.iter_unpack("<IIf", raw[24:])]


def read(path):
    with open(path, "rb") as file:
        return Reader(file.read()).parsed


def summaries(runs, window):
    """What a zoom level of these runs must have."""
    found = {}
    for name, begin, end, value in runs:
        for at in range(begin // window * window, end, window):
            a, b = max(at, begin), min(at + window, end)
            key = (name, at)
            old = found.get(key, (name, a, b, 0, value, value, 0, 0))
            n = b - a
            found[key] = (name, old[1], b, old[3] + n, min(old[4], value), max(old[5], value),
                          old[6] + n * value, old[7] + n * value * value)
    return list(found.values())
