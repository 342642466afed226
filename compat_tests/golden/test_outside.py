"""Other programs make the golden bytes of the golden values, and read those values from the octets.

So the tables are not the opinion of one encoder. Each test lists the records that its program does not know.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compat_tests.clients.qpid.python27 import Python27, Unavailable, client
from compat_tests.golden import make, outside, tables
from compat_tests.golden.outside import Encoded
from compat_tests.golden.published import SPECS
from compat_tests.golden.tables import Row
from compat_tests.tools.matrix import cases

TSHARK = shutil.which("tshark")


def records(protocol: str) -> list[Row]:
    return [row for row in tables.rows(protocol) if tables.kind_of(row) == "record"]


def agree(rows: list[Row], made: Encoded, unknown: set[str]) -> int:
    """Assert that the octets are golden, and that just these records are unknown. Return the cases."""
    assert {row["name"] for row, found in zip(rows, made, strict=True) if found is None} == unknown
    differing = [
        (row["name"], case, found[case].hex(), octets)
        for row, found in zip(rows, made, strict=True)
        if found is not None
        for case, octets in row["octets"].items()
        if found[case].hex() != octets
    ]
    assert differing == []
    return sum(len(row["octets"]) for row, found in zip(rows, made, strict=True) if found is not None)


OLD_ACCESS = {"access.request", "access.request-ok"}
BLOCKING = {"connection.blocked", "connection.unblocked"}
SECRETS = {"connection.update-secret", "connection.update-secret-ok"}
BINDING = {"exchange.bind", "exchange.bind-ok", "exchange.unbind", "exchange.unbind-ok"}
CONFIRMS = {"confirm.select", "confirm.select-ok", "basic.nack"}
BOUND = {"exchange.bound", "exchange.bound-ok"}
RECOVERING = {"basic.recover-sync", "basic.recover-sync-ok"}
UNBINDING = {"queue.unbind", "queue.unbind-ok"}


def test_pamqp_makes_golden_bytes_of_records() -> None:
    rows = records("0-9-1")
    assert agree(rows, outside.by_pamqp(rows), OLD_ACCESS) == 127


def test_pamqp_reads_golden_field_tables() -> None:
    """pamqp knows every tag that RabbitMQ has, and takes the mantissa of a decimal for a signed one."""
    count = 0
    with cases() as case:
        for row in tables.rows("0-9-1"):
            tags = [tag for _, tag, _ in row.get("table", ())]
            unsigned = [value for _, tag, value in row.get("table", ()) if tag == "D" and value[1] >> 31]
            if "rabbitmq" in row.get("grammars", ()) and not unsigned:
                with case(*tags):
                    found = outside.table_by_pamqp(bytes.fromhex(row["octets"]))
                    assert found == tables.python_table(row["table"])
                    count += 1
    assert count == 25


def test_pamqp_makes_golden_bytes_of_frames() -> None:
    rows = [row for row in tables.rows("0-9-1") if "content" in row or row.get("frame") in (3, 8)]
    (basic,) = [row for row in records("0-9-1") if row["record"] == "properties"]
    made = [outside.frames_by_pamqp(row, basic) for row in rows]
    assert [octets.hex() for octets in made] == [row["octets"] for row in rows]
    assert len(rows) == 4


@pytest.mark.skipif(
    not SPECS.is_dir(), reason="amqp-specs is not installed (Debian: apt-get install amqp-specs)"
)
@pytest.mark.parametrize(
    ("protocol", "unknown", "count"),
    [
        ("0-8", {*BOUND, *UNBINDING, "basic.recover-sync", "basic.recover-ok"}, 189),
        ("0-9", {*BOUND, *RECOVERING, "message.transfer"}, 216),
        ("0-9-1", {*OLD_ACCESS, *BLOCKING, *SECRETS}, 123),
    ],
)
def test_txamqp_makes_golden_bytes_of_records(protocol: str, unknown: set[str], count: int) -> None:
    rows = records(protocol)
    assert agree(rows, outside.by_txamqp(protocol, rows), unknown) == count


@pytest.fixture(scope="module")
def apache() -> Python27:
    try:
        return client()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.long
@pytest.mark.parametrize(
    ("protocol", "unknown", "count"),
    [
        # Its basic.consume of 0-8 has a table.
        ("0-8", {*UNBINDING, "basic.recover-sync", "basic.consume"}, 186),
        ("0-9", set(), 225),
        ("0-9-1", {*OLD_ACCESS, *BLOCKING, *SECRETS, *BINDING, *CONFIRMS}, 110),
        # It has no byte-ranges.
        ("0-10", {"session.expected", "session.confirmed", "session.command-fragment"}, 459),
    ],
)
def test_apache_client_makes_golden_bytes_of_records(
    apache: Python27, protocol: str, unknown: set[str], count: int
) -> None:
    rows = records(protocol)
    assert agree(rows, outside.by_qpid(apache, protocol, rows), unknown) == count


@pytest.mark.long
def test_apache_client_makes_golden_bytes_of_0_10_frames(apache: Python27) -> None:
    rows = [row for row in tables.rows("0-10") if tables.kind_of(row) == "frames"]
    assert [found.hex() for found in outside.assemblies_by_qpid(apache, rows)] == [
        row["octets"] for row in rows
    ]
    assert len(rows) == 10


@pytest.mark.long
def test_apache_client_makes_golden_bytes_of_0_10_types(apache: Python27) -> None:
    rows = [row for row in tables.rows("0-10") if tables.kind_of(row) == "type"]
    made = outside.types_by_qpid(apache, rows)
    with cases() as case:
        for row, octets in zip(rows, made, strict=True):
            if octets is not None:
                with case(row["type"]):
                    assert octets.hex() == row["octets"]
    assert sum(octets is not None for octets in made) == 25


XID_OWNERS = ("start", "end", "commit", "forget", "get-timeout", "prepare", "rollback", "set-timeout")

#: What tshark 4.0 does not read: all of class message of 0-9, and what brokers have added.
UNREAD = {
    "0-8": {
        *((name, field) for name in ("exchange.bound",) for field in ("exchange", "routing-key", "queue")),
        *(("exchange.bound-ok", field) for field in ("reply-code", "reply-text")),
        *(("connection.redirect", field) for field in ("host", "known-hosts")),
        *(("connection.close", field) for field in ("reply-code", "reply-text", "class-id", "method-id")),
        ("basic.recover-sync", "requeue"),
    },
    "0-9": {
        *(("exchange.bound", field) for field in ("exchange", "routing-key", "queue")),
        *(("exchange.bound-ok", field) for field in ("reply-code", "reply-text")),
        ("basic.recover-sync", "requeue"),
    },
    "0-9-1": {("connection.update-secret", field) for field in ("new-secret", "reason")},
    "0-10": {
        *((name, "known-hosts") for name in ("connection.open-ok", "connection.redirect")),
        *((name, "fragments") for name in ("session.expected", "session.confirmed")),
        *((f"dtx.{name}", "xid") for name in XID_OWNERS),
        *(("dtx.xid", field) for field in ("format", "global-id", "branch-id")),
        ("dtx.get-timeout-result", "timeout"),
        ("dtx.recover-result", "in-doubt"),
        ("execution.result", "value"),
        ("execution.exception", "command-code"),
        ("message.message-properties", "reply-to"),
        ("stream.qos", "consume-rate"),  # It calls it the prefetch-size.
    },
}
#: What tshark 4.0 reads wrong; every other program agrees with the golden bytes of all of these.
WRONG = {
    "0-10": {
        ("execution.exception", "class-code"),  # It shows it as the class of the command itself.
        ("message.subscribe", "arguments"),  # It starts at the size of the map.
        ("dtx.set-timeout", "timeout"),  # It takes the xid in front for a struct with a size of two octets.
        *((f"exchange.{name}", "binding-key") for name in ("bind", "unbind", "bound")),  # Only its size.
        *((f"message.{name}", "transfers") for name in ("release", "acquire")),  # Neither shows its ranges.
    },
}
LEAST = {"0-8": 190, "0-9": 230, "0-9-1": 160, "0-10": 215}


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed (Debian: apt-get install tshark)")
@pytest.mark.parametrize("protocol", make.PROTOCOLS)
def test_tshark_reads_names_and_values_of_golden_bytes(protocol: str, tmp_path: Path) -> None:
    assert TSHARK is not None
    rows = [
        row
        for row in records(protocol)
        if row["fields"] and (row["record"] != "struct" or row["major"] is not None)
    ]
    first = bytes.fromhex(tables.head(protocol)["header"])
    readings = outside.by_tshark(TSHARK, tmp_path, protocol, first, rows)
    wrong = {(row["name"], field) for row, each in zip(rows, readings, strict=True) for field in each.wrong}
    unread = {
        (row["name"], field)
        for row, each in zip(rows, readings, strict=True)
        for field in each.unread
        if not (protocol == "0-9" and row["name"].startswith("message."))
    }
    assert wrong <= WRONG.get(protocol, set())
    assert unread <= UNREAD[protocol]
    assert sum(len(each.right) for each in readings) >= LEAST[protocol]
