"""What other programs make of the golden values: encoders that share nothing with the project.

| Program | Protocols | What it does |
|---|---|---|
| pamqp | 0-9-1 | encodes |
| txAMQP | 0-8, 0-9, by the published definitions | encodes |
| Apache's Python client, on Python 2.7 | 0-8, 0-9, 0-9-1, 0-10 | encodes |
| tshark | 0-9-1, 0-9, 0-10 | reads the octets, and names each field with its value |

An encoder gives, for each row, the octets of each case, or nothing where it does not know the record.
"""

from __future__ import annotations

import io
import json
import struct
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock
from xml.etree import ElementTree

from compat_tests.clients.qpid.python27 import Python27
from compat_tests.golden import encoding
from compat_tests.golden.make import FOLDER
from compat_tests.golden.published import SPECS
from compat_tests.golden.tables import Row
from compat_tests.golden.values import cases

__all__ = [
    "Encoded",
    "assemblies_by_qpid",
    "by_pamqp",
    "by_qpid",
    "by_tshark",
    "by_txamqp",
    "cases_of",
    "frames_by_pamqp",
    "table_by_pamqp",
    "types_by_qpid",
]

Encoded = list[dict[str, bytes] | None]


def cases_of(row: Row) -> dict[str, list[Any]]:
    """The values of all fields in each case of a record."""
    typed = {name: (kind, value) for name, kind, value in row["fields"]}
    optional = row["record"] != "method" and row["name"] != "session.command-fragment"
    found = cases(row["record"], typed, optional=optional)
    if row["record"] == "command":
        found["sync"] = found["all"]
    return {case: [values[name] for name, _, _ in row["fields"]] for case, values in found.items()}


# --- pamqp -------------------------------------------------------------------------------------------------


def by_pamqp(rows: list[Row]) -> Encoded:
    """The methods and properties of 0-9-1, as pamqp encodes them."""
    return [_pamqp_record(row) for row in rows]


def _pamqp_record(row: Row) -> dict[str, bytes] | None:
    from pamqp import commands

    if row["record"] == "properties":
        kind: Any = commands.Basic.Properties
        prefix = b""
    else:
        index = row["major"] << 16 | row["minor"]
        kind = commands.INDEX_MAPPING.get(index)
        prefix = index.to_bytes(4, "big")
    if kind is None or len(kind.attributes()) != len(row["fields"]):
        return None
    found = {}
    with mock.patch.object(kind, "validate", lambda made: None):  # It wants 0 in what 0-9-1 has reserved.
        for case, values in cases_of(row).items():
            made = kind.__new__(kind)
            for name, (_, of, _), value in zip(kind.attributes(), row["fields"], values, strict=True):
                setattr(made, name, None if value is None else _pamqp_value(of, value))
            found[case] = prefix + made.marshal()
    return found


def _pamqp_value(kind: str, value: Any) -> Any:
    if kind == "longstr":
        return bytes.fromhex(value).decode()
    if kind == "longlong":  # Its own are signed.
        return value - (1 << 64) if value >> 63 else value
    if kind == "timestamp":
        return datetime.fromtimestamp(value, timezone.utc)
    return {name: item for name, _, item in value} if kind == "table" else value


def table_by_pamqp(octets: bytes) -> dict[str, Any]:
    """A field table, as pamqp reads it; dates are seconds since 1970.

    Raises:
        ValueError: it does not know a tag.
    """
    from pamqp import decode

    size, found = decode.field_table(octets)
    assert size == len(octets)
    return _plain(found)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return int(value.timestamp())
    return bytes(value) if isinstance(value, bytearray) else value


def frames_by_pamqp(row: Row, properties_row: Row) -> bytes:
    """What pamqp makes of a content, with all properties or none, or of a body or heartbeat frame."""
    from pamqp import body, commands, frame, header, heartbeat

    if "frame" in row:
        kinds = {3: lambda: body.ContentBody(bytes.fromhex(row["payload"])), 8: heartbeat.Heartbeat}
        return frame.marshal(kinds[row["frame"]](), row["channel"])
    properties = commands.Basic.Properties()
    if row["properties"] == properties_row["octets"]["all"]:
        for name, (_, kind, value) in zip(properties.attributes(), properties_row["fields"], strict=True):
            setattr(properties, name, _pamqp_value(kind, value))
    sent = bytes.fromhex(row["body"])
    pieces = [sent[start : start + row["limit"]] for start in range(0, len(sent), row["limit"])]
    with mock.patch.object(commands.Basic.Properties, "validate", lambda made: None):
        parts = [header.ContentHeader(0, len(sent), properties), *map(body.ContentBody, pieces)]
        return b"".join(frame.marshal(part, row["channel"]) for part in parts)


# --- txAMQP ------------------------------------------------------------------------------------------------

_DEFINITIONS = {
    "0-8": SPECS / "0-8" / "amqp0-8.stripped.xml",
    "0-9": SPECS / "0-9" / "amqp0-9.stripped.xml",
    "0-9-1": SPECS / "0-9-1-rabbit" / "amqp0-9-1.stripped.extended.xml",
}


def by_txamqp(protocol: str, rows: list[Row]) -> Encoded:
    """The methods and properties of a protocol, as txAMQP encodes them by the published definitions."""
    from txamqp import spec

    definitions = spec.load(str(_DEFINITIONS[protocol]))
    return [_txamqp_record(definitions, row) for row in rows]


def _txamqp_record(definitions: Any, row: Row) -> dict[str, bytes] | None:
    from txamqp import codec, connection

    of_class = definitions.classes.byid.get(row["major"])
    is_method = row["record"] == "method"
    if of_class is None or (is_method and row["minor"] not in of_class.methods.byid):
        return None
    fields = of_class.methods.byid[row["minor"]].fields if is_method else of_class.fields
    kinds = [kind for _, kind, _ in row["fields"]]
    if [field.type for field in fields] != kinds or "content" in kinds:
        return None
    found = {}
    for case, values in cases_of(row).items():
        given = [
            None if value is None else _txamqp_value(kind, value)
            for (_, kind, _), value in zip(row["fields"], values, strict=True)
        ]
        stream = io.BytesIO()
        encoder = codec.Codec(stream)
        if is_method:
            connection.Method(of_class.methods.byid[row["minor"]], *given).encode(encoder)
        else:
            named = {field.name: value for field, value in zip(fields, given, strict=True)}
            connection.Header(of_class, 0, 0, **named).encode(encoder)
        encoder.flush()
        found[case] = stream.getvalue()[4 if is_method else 16 :]  # without its length, and the header's
    return found


def _txamqp_value(kind: str, value: Any) -> Any:
    if kind == "shortstr":
        return value.encode()  # It counts characters, not octets.
    if kind == "longstr":
        return bytes.fromhex(value)
    if kind == "table":  # Its numbers are unsigned.
        return {name: item & 0xFFFFFFFF if tag == "I" else item for name, tag, item in value}
    return value


# --- Apache's client ---------------------------------------------------------------------------------------


def by_qpid(client: Python27, protocol: str, rows: list[Row]) -> Encoded:
    """The records of a protocol, as Apache's client encodes them."""
    request = {"protocol": protocol, "rows": [{**row, "cases": cases_of(row)} for row in rows]}
    return [_hexadecimal(found) for found in _ask_qpid(client, request)]


def assemblies_by_qpid(client: Python27, rows: list[Row]) -> list[bytes]:
    """The frames of assemblies of 0-10, as Apache's client makes them."""
    return [bytes.fromhex(text) for text in _ask_qpid(client, {"protocol": "0-10", "frames": rows})]


def types_by_qpid(client: Python27, rows: list[Row]) -> list[bytes | None]:
    """A map with a value of each type of 0-10, as Apache's client makes it; None where it cannot."""
    made = _ask_qpid(client, {"protocol": "0-10", "types": rows})
    return [None if text is None else bytes.fromhex(text) for text in made]


def _ask_qpid(client: Python27, request: dict[str, Any]) -> list[Any]:
    done = subprocess.run(
        client.command(str(FOLDER / "qpid27.py")),
        env=client.environment(),
        input=json.dumps(request),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: list[Any] = json.loads(done.stdout)
    return answer


def _hexadecimal(found: dict[str, str | None]) -> dict[str, bytes] | None:
    if None in found.values():
        return None
    return {case: bytes.fromhex(text) for case, text in found.items() if text is not None}


# --- tshark ------------------------------------------------------------------------------------------------

_PORT = 5672
_CHANNEL = 1
#: The bare message.transfer that carries a struct in its header segment.
_TRANSFER = bytes.fromhex("040101000000")


def frames_of(protocol: str, row: Row) -> bytes:
    """A record with all fields, in the frames that carry it."""
    octets = bytes.fromhex(row["octets"]["all"])
    if row["record"] == "method":
        return encoding.family_frame(1, _CHANNEL, octets)
    if row["record"] == "properties":
        return encoding.family_frame(2, _CHANNEL, encoding.content_header(row["major"], 0, 0, octets))
    if row["record"] == "control":
        return encoding.frame_0_10(15, 0, 0, _CHANNEL, octets)
    if row["record"] == "command":
        return encoding.frame_0_10(15, 1, 1, _CHANNEL, octets)
    transfer = encoding.frame_0_10(11, 1, 1, _CHANNEL, _TRANSFER)
    return transfer + encoding.frame_0_10(7, 2, 1, _CHANNEL, octets)


def capture(first: bytes, frames: list[bytes]) -> bytes:
    """A file for Wireshark: what a client sends over TCP, a segment for the header and each frame."""
    made = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0xFFFF, 101)  # raw IP
    number = 1
    address = bytes((127, 0, 0, 1)) * 2
    for place, octets in enumerate((first, *frames)):
        tcp = struct.pack(">HHIIBBHHH", 40000, _PORT, number, 1, 0x50, 0x18, 0xFFFF, 0, 0) + octets
        ip = struct.pack(">BBHHHBBH", 0x45, 0, len(tcp) + 20, place, 0x4000, 64, 6, 0) + address + tcp
        made += struct.pack("<IIII", 1, place, len(ip), len(ip)) + ip
        number += len(octets)
    return made


class Reading(NamedTuple):
    """What tshark has read of a record: fields with the golden value, with another one, and those unread."""

    right: list[str]
    wrong: list[str]
    unread: list[str]


def by_tshark(program: str, folder: Path, protocol: str, first: bytes, rows: list[Row]) -> list[Reading]:
    """Have tshark read each record with all its fields, and compare names and values."""
    path = folder / f"{protocol}.pcap"
    path.write_bytes(capture(first, [frames_of(protocol, row) for row in rows]))
    done = subprocess.run(
        [program, "-r", str(path), "-T", "pdml"], capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    packets = ElementTree.fromstring(done.stdout.decode(errors="replace")).findall("packet")[1:]
    assert len(packets) == len(rows)
    return [_reading(row, packet) for row, packet in zip(rows, packets, strict=True)]


def _reading(row: Row, packet: ElementTree.Element) -> Reading:
    found = [
        each
        for proto in packet.findall("proto")
        if proto.get("name") == "amqp"
        for each in proto.iter("field")
        if (each.get("name") or "").startswith("amqp.")
    ]
    of_family = row["record"] in ("method", "properties")
    prefix = "amqp.method." if of_family else "amqp."
    named: dict[str, list[ElementTree.Element]] = {}
    for each in found:
        name = each.get("name") or ""
        if name.startswith(prefix) and name.count(".") > 1:
            named.setdefault(name.rpartition(".")[2].replace("_", "-"), []).append(each)
    tables = [each.get("showname", "") for each in found if each.get("name") == "amqp.field"]
    reading = Reading([], [], [])
    for name, kind, value in row["fields"]:
        if kind in ("table", "map") and tables:
            # In a table of 0-9-1 it reads both fields, in a map of 0-10 it cannot show the number.
            texts = {each.partition("): ")[2] for each in tables}
            expected = {str(item) for _, tag, item in value if tag != "int64"}
            (reading.right if expected <= texts else reading.wrong).append(name)
            continue
        element = next((each for other in _NAMES.get(name, (name,)) for each in named.get(other, ())), None)
        said = None if element is None else _says(kind, value, element)
        (reading.unread if said is None else reading.right if said else reading.wrong).append(name)
    return reading


#: Names that tshark has for fields: those of other versions, most of them.
_NAMES = {
    "reserved-1": ("ticket", "out-of-band", "channel-id", "known-hosts", "capabilities", "cluster-id"),
    "reserved-2": ("insist",),
    "reserved": ("cluster-id",),
    "no-wait": ("no-wait", "nowait"),
    "max-frame-size": ("frame-max",),
    "resume-id": ("id",),
    "unit": ("credit-unit",),
    "code": ("code", "reject-code"),
    "priority": ("priority", "delivery-priority"),
    "name": ("name", "exchange"),
    "status": ("xa-status",),
}


def _says(kind: str, value: Any, element: ElementTree.Element) -> bool | None:
    """Whether an element has the value; None for types that are not compared."""
    octets, shown = element.get("value", ""), element.get("show", "")
    if kind == "bit":
        return shown == "1"
    if kind == "sequence-set":
        return element.get("showname", "").endswith(str([tuple(each) for each in value]))
    if kind == "array":
        return bool(octets) and all(item.encode().hex() in octets for item in value[1])
    if isinstance(value, int):
        return octets != "" and int(octets, 16) == value
    if kind in ("shortstr", "str8", "str16"):  # In 0-10 with the size.
        return octets.endswith(value.encode().hex()) and len(octets) - len(value.encode().hex()) <= 4
    if kind in ("longstr", "vbin8", "vbin16", "vbin32", "uuid"):
        return octets.endswith(value) and len(octets) - len(value) <= 8
    return None
