# ruff: noqa
"""Runs on Python 2.7: has Apache's client encode the golden values; prints what it made of them.

The input is a protocol's rows in JSON; the output is, for each row, the octets of each case in hexadecimal
digits, or null where the client does not know the record.
"""

from __future__ import print_function

import json
import sys
from collections import OrderedDict

from qpid import connection08, ops, spec08, specs_config
from qpid.codec import Codec
from qpid.codec010 import Codec as Codec010
from qpid.codec010 import StringCodec
from qpid.datatypes import RangedSet, UUID, Serial
from qpid.framing import Frame, FrameEncoder, OpEncoder, Segment, SegmentEncoder
from qpid.reference import ReferenceId

try:
    from cStringIO import StringIO
except ImportError:
    from io import StringIO

SPECS = {
    "0-8": specs_config.amqp_spec_0_8,
    "0-9": specs_config.amqp_spec_0_9,
    "0-9-1": specs_config.amqp_spec_0_9_1,
}


def octets_of(digits):
    return bytearray.fromhex(digits).decode("latin-1").encode("latin-1")


# --- 0-8 to 0-9-1 --------------------------------------------------------------------------------------------


def family_value(kind, value):
    if kind == "shortstr":
        return value.encode("utf-8")
    if kind == "longstr":
        return octets_of(value)
    if kind == "content":
        by_reference, octets = value
        return ReferenceId(octets_of(octets)) if by_reference else octets_of(octets)
    if kind == "table":
        return OrderedDict(
            (name.encode("utf-8"), item.encode("utf-8") if tag == "S" else item) for name, tag, item in value
        )
    return value


def of_family(spec, row, values):
    """The octets of one case; `values` are the values of all fields, None for one that is left out."""
    kinds = dict((name, kind) for name, kind, _ in row["fields"])
    made = [
        None if value is None else family_value(kinds[name], value)
        for (name, _, _), value in zip(row["fields"], values)
    ]
    stream = StringIO()
    enc = Codec(stream, spec)
    klass = spec.classes.byid.get(row["major"])
    if klass is None:
        return None
    if row["record"] == "method":
        method = klass.methods.byid.get(row["minor"])
        if method is None or len(method.fields) != len(made):
            return None
        connection08.Method(method, made).encode(enc)
        enc.flush()
        return stream.getvalue()
    properties = dict(
        (field.name, value) for field, value in zip(klass.fields.items, made) if value is not None
    )
    connection08.Header(klass, 0, 0, properties).encode(enc)
    enc.flush()
    return stream.getvalue()[12:]


# --- 0-10 ----------------------------------------------------------------------------------------------------


def struct_of(name, values):
    kind = ops.COMPOUND[name.split(".")[1].replace("-", "_")]
    return kind(
        *[None if value is None else value_0_10(f.type, value) for f, value in zip(kind.FIELDS, values)]
    )


def value_0_10(kind, value):
    if kind.startswith("vbin"):
        return octets_of(value)
    if kind == "uuid":
        return UUID(bytes=octets_of(value))
    if kind == "map":
        return OrderedDict((key, item) for key, _, item in value)
    if kind == "array":
        return value[1]
    if kind == "struct32":
        return struct_of(*value)
    if kind == "sequence_no":
        return Serial(value)
    if kind == "sequence_set":
        found = RangedSet()
        for lower, upper in value:
            found.add(Serial(lower), Serial(upper))
        return found
    if isinstance(value, list) and kind.split(".")[-1] in ("xid", "reply_to"):
        name = kind.split(".")[-1]
        return struct_of("x." + name, value)
    return value


def of_0_10(row, values, sync):
    name = row["name"].split(".")[1].replace("-", "_")
    if row["record"] == "struct":
        kind = ops.COMPOUND.get(name)
    else:
        table = ops.CONTROLS if row["record"] == "control" else ops.COMMANDS
        kind = table.get(row["major"] << 8 | row["minor"])
    if kind is None or any("byte-ranges" in of or "fragment" in of for _, of, _ in row["fields"]):
        return None
    made = [None if v is None else value_0_10(f.type, v) for f, v in zip(kind.FIELDS, values)]
    record = (
        kind(*made) if row["record"] == "struct" else kind(**dict(zip([f.name for f in kind.FIELDS], made)))
    )
    if row["record"] == "command":
        record.sync = sync
        return OpEncoder().encode_command(record)
    return OpEncoder().encode_compound(record)


def load_all_of_0_10():
    """Load classes file and stream as well, which the client leaves out."""
    ops.included = lambda node: True
    for name, bases, attributes in ops.load_types_from_xml(ops.file):
        made = type(name, bases, attributes)
        for base, known in (
            (ops.Command, ops.COMMANDS),
            (ops.Control, ops.CONTROLS),
            (ops.Compound, ops.COMPOUND),
        ):
            if issubclass(made, base):
                known.setdefault(made.CODE if made.CODE is not None else made.NAME, made)
                if base is ops.Compound:
                    known.setdefault(made.NAME, made)
                break


def assembly(row):
    """The frames of the segments of a row."""
    last = len(row["frames"]) - 1
    segments = [
        Segment(place == 0, place == last, kind, 0 if kind == 0 else 1, row["channel"], octets_of(payload))
        for place, (kind, payload) in enumerate(row["frames"])
    ]
    cutter = SegmentEncoder(row["limit"] - Frame.HEADER_SIZE)
    cutter.write(*segments)
    writer = FrameEncoder()
    writer.write(*cutter.read())
    return writer.read()


def plain(kind, value):
    """A value of a type that stands behind its code."""
    if kind == "char":
        return value.encode("iso8859-15")
    if kind.startswith("bin"):
        return octets_of(value)
    if kind == "map":
        return OrderedDict((key, plain(of, item)) for key, of, item in value)
    if kind == "list":
        return [plain(of, item) for of, item in value]
    return value_0_10(kind, value)


def typed(row):
    """A map with a value of the row's type, or None for a type that the client cannot write."""
    name = row["type"].replace("-", "_")
    # It writes arrays as the types that suit Python's values.
    if name in ("array", "bit") or name not in ops.PRIMITIVE or not hasattr(Codec010, "write_" + name):
        return None
    inner = StringCodec()
    inner.write_uint32(2)
    inner.write_str8("key")
    inner.write_uint8(ops.PRIMITIVE[name].CODE)
    getattr(inner, "write_" + name)(plain(row["type"], row["value"]))
    inner.write_str8("next")
    inner.write_uint8(ops.PRIMITIVE["uint8"].CODE)
    inner.write_uint8(7)
    outer = StringCodec()
    outer.write_vbin32(inner.encoded)
    return outer.encoded


def main():
    request = json.load(sys.stdin)
    if "types" in request:
        made = [typed(row) for row in request["types"]]
        json.dump([None if octets is None else octets.encode("hex") for octets in made], sys.stdout)
        return
    if "frames" in request:
        json.dump([assembly(row).encode("hex") for row in request["frames"]], sys.stdout)
        return
    protocol = request["protocol"]
    spec = None if protocol == "0-10" else spec08.load(SPECS[protocol])
    if spec is None:
        load_all_of_0_10()
    answer = []
    for row in request["rows"]:
        found = {}
        for case, values in row["cases"].items():
            try:
                if spec is None:
                    octets = of_0_10(row, values, case == "sync")
                else:
                    octets = of_family(spec, row, values)
                found[case] = None if octets is None else octets.encode("hex")
            except Exception as error:
                found[case] = "%s: %s" % (type(error).__name__, error)
        answer.append(found)
    json.dump(answer, sys.stdout)


main()
