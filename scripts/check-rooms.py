#!/usr/bin/env python3
"""check-rooms.py [--root DIR] [--objects DIR] -- checks the sources against the table of rooms.

The sources lie in rooms, the folders below src/. Four files at the top belong to rooms, too. This
script fails, with one line for each fault, if
  - a file lies in no room;
  - an include line does not name a room and a header of it, or a header at the top;
  - a file includes a header of a room that its own room may not include;
  - files include each other in a circle;
  - with --objects, the folder of the object files: a file calls one of a room that its own may not
    include, or files call each other in a circle. nm says which file defines a function and which
    files use it. A call through a pointer does not count, nor does one of a function of the C
    library that a file puts in front of the C library's own.
NAME.c and NAME.h are one file here. doc/design.md says what each room is for.
"""
import argparse
import ctypes
import pathlib
import re
import subprocess
import sys

# Each room and the rooms that it may include, besides itself.
ROOMS = {
    "util": "",
    "os": "util",
    "deflate": "util",
    "bam": "util deflate",
    "order": "util bam",
    "fixmate": "util bam",
    "split": "util bam order",
    "stats": "util os bam fixmate",
    "depth": "util os bam split",
    "picard": "util os bam",
    "counts": "util bam stats depth picard",
    "columns": "util os bam",
    "spill": "util os bam order",
    "markdup": "util os bam spill",
    "input": "util os bam order fixmate spill markdup",
    "output": "util os bam order counts columns spill markdup split",
    "resume": "util os bam order fixmate counts columns spill markdup input split output",
    "sort": "util os bam order fixmate columns spill markdup input split output resume",
    "cli": "util os bam order fixmate counts columns spill markdup input split output resume sort",
}

# The sources at the top, and the room that each belongs to.
DOORS = {
    "bam_rocksort.c": "cli",
    "bam_sort.c": "sort",
    "bam_sort_key.h": "order",
    "rocksdb_opts.c": "spill",
}


def sources(root):
    """{path of each source, relative to root: its room}."""
    found = {}
    for path in sorted([*root.glob("*.[ch]"), *root.glob("src/**/*.[ch]")]):
        name = path.relative_to(root).as_posix()
        parts = name.split("/")
        found[name] = DOORS.get(name) if len(parts) == 1 else parts[1] if len(parts) == 3 else None
    return found


def module_of(name, room):
    """What a file and its header are called together: room/stem."""
    return f"{room}/{pathlib.PurePath(name).stem}"


def included_path(name):
    """Where the header of an include line lies, relative to the root."""
    return f"src/{name}" if "/" in name else name


def check_includes(root, rooms):
    """Returns the faults of all include lines, and {module: modules that it includes}."""
    faults, arrows = [], {}
    for name, room in rooms.items():
        if room not in ROOMS:
            faults.append(f"{name}: lies in no room")
            continue
        here = arrows.setdefault(module_of(name, room), set())
        text = (root / name).read_text(encoding="utf-8")
        for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*"([^"]*)"', text, re.M):
            place = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
            target = included_path(match.group(1))
            if target not in rooms:
                faults.append(f"{place}: \"{match.group(1)}\" names no room and header of it")
                continue
            other = rooms[target]
            if other != room and other not in ROOMS[room].split():
                faults.append(f"{place}: {room} may not include {other} (\"{match.group(1)}\")")
            here.add(module_of(target, other))
    return faults, arrows


def open_c_library():
    try:
        return ctypes.CDLL("libc.so.6")
    except OSError:
        return ctypes.CDLL(None)


def is_of_c_library(symbol, library=open_c_library()):
    """Whether the C library has a function of this name. A caller of malloc means that one."""
    return hasattr(library, symbol)


def check_calls(objects, rooms):
    """Returns {module: modules whose functions or variables it uses}, by the object files."""
    defines, uses = {}, {}
    for path in sorted(objects.rglob("*.o")):
        name = path.relative_to(objects).with_suffix(".c").as_posix()
        if name not in rooms:
            continue
        module = module_of(name, rooms[name])
        listing = subprocess.run(["nm", str(path)], check=True, stdout=subprocess.PIPE,
                                 encoding="utf-8").stdout
        for line in listing.splitlines():
            kind, symbol = line.split()[-2:]
            if kind in "TDBRVC" and not is_of_c_library(symbol):
                defines[symbol] = module
            elif kind == "U":
                uses.setdefault(module, set()).add(symbol)
        uses.setdefault(module, set())
    missing = [name for name in rooms if name.endswith(".c")
               and not (objects / name).with_suffix(".o").exists()]
    if missing:
        sys.exit(f"check-rooms: '{objects}' has no object file of {missing[0]}: build first")
    return {module: {defines[symbol] for symbol in symbols if symbol in defines}
            for module, symbols in uses.items()}


def circles(arrows):
    """The circles: for each group of modules that reach each other, their sorted names."""
    reach = {}
    for start in arrows:
        seen, todo = set(), [start]
        while todo:
            for other in arrows.get(todo.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        reach[start] = seen
    groups = {tuple(sorted({a} | {b for b in reach[a] if a in reach.get(b, ())})) for a in reach}
    return sorted(group for group in groups if len(group) > 1)


def check_called_rooms(calls):
    """Returns a fault for each call of a room that the caller's may not include."""
    return [f"{caller}: calls {called}, which its room may not include"
            for caller, others in sorted(calls.items()) for called in sorted(others)
            if called.split("/")[0] not in (caller.split("/")[0],
                                            *ROOMS[caller.split("/")[0]].split())]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--objects", type=pathlib.Path)
    args = parser.parse_args()
    rooms = sources(args.root)
    faults, arrows = check_includes(args.root, rooms)
    if not rooms:
        sys.exit(f"check-rooms: there are no sources in '{args.root}'")
    faults += [f"{', '.join(group)}: include each other in a circle" for group in circles(arrows)]
    if args.objects:
        calls = check_calls(args.objects, rooms)
        faults += check_called_rooms(calls)
        faults += [f"{', '.join(group)}: call each other in a circle" for group in circles(calls)]
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
