"""Lines of SAM from tables of columns, for tests: what doc/columns.md says of them, read backwards.

A table is one of pyarrow. Whole numbers, texts and lists come as Python has them.
"""

import struct

try:
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError:
    pyarrow = None

FIELDS = ("qname", "flag", "rname", "pos", "mapq", "cigar", "rnext", "pnext", "tlen", "seq", "qual")
ZEROS = {"pos": 0, "pnext": 0}
LISTS = {"int8": "c", "uint8": "C", "int16": "s", "uint16": "S", "int32": "i", "uint32": "I",
         "float": "f"}


def short_float(value):
    """A number of 32 bits as SAM has it. The map has the bits of those that are none."""
    if isinstance(value, str) and value.startswith("nan("):
        return "nan"
    return "%g" % struct.unpack("f", struct.pack("f", float(value)))[0]


def value_text(type_letter, value, element):
    """The value of a tag's own column. element: the type of the elements of a list, or None."""
    if type_letter == "f":
        return short_float(value)
    if type_letter == "B":
        texts = [short_float(one) if element == "f" else str(one) for one in value]
        return ",".join([element] + texts)
    return str(value)


def mapped_text(type_letter, value):
    """The value that the map has. Its floats have more digits than those of SAM."""
    if type_letter == "f":
        return short_float(value)
    if type_letter == "B" and value[0] == "f":
        return ",".join(["f"] + [short_float(one) for one in value.split(",")[1:]])
    return value


def line_of(row, elements):
    """The line of a row, which is a dictionary. elements: {name of a list: type of its elements}."""
    words = []
    for name in FIELDS:
        value = row[name]
        if name == "rnext" and value is not None and value == row["rname"]:
            value = "="
        words.append(str(ZEROS.get(name, "*") if value is None else value))
    others = dict(row["tags"] or ())
    for one in row["tag_types"].split(",") if row["tag_types"] else ():
        tag, letter = one.split(":")
        if row.get(tag) is not None:
            text = value_text(letter, row[tag], elements.get(tag))
        else:
            text = mapped_text(letter, others.pop(tag))
        words.append(f"{tag}:{'i' if letter in 'cCsSI' else letter}:{text}")
    assert not others, f"tags that tag_types does not have: {others}"
    return "\t".join(words)


def read_table(path):
    """The table of a file of columns, whichever form it has. It needs pyarrow."""
    with open(path, "rb") as file:
        begin = file.read(6)
    if begin.startswith(b"PAR1"):
        return pyarrow.parquet.read_table(path)
    with pyarrow.memory_map(str(path)) as file:
        return (pyarrow.ipc.open_file if begin == b"ARROW1"
                else pyarrow.ipc.open_stream)(file).read_all()


def lines_of(table):
    elements = {field.name: LISTS[str(field.type.value_type)] for field in table.schema
                if str(field.type).startswith("list")}
    return [line_of(row, elements) for row in table.to_pylist()]
