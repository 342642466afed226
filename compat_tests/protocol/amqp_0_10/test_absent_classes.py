"""Brokers of 0-10 that are made without some classes and commands (`Personality.not_implemented`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compat_tests.scripted.amqp_0_10 import Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.protocols.amqp_0_10.codec.structs import Command

rule = pytest.mark.rule

XID = structs.Xid(format=1, global_id=b"g", branch_id=b"b")


@rows(
    "absent, command",
    pytest.param("tx", x.TxSelect(), marks=rule("0-10/tx/optional")),
    pytest.param("dtx", x.DtxSelect(), marks=rule("0-10/dtx/optional")),
    pytest.param("file", x.FileQos(), marks=rule("0-10/file/optional")),
    pytest.param("stream", x.StreamQos(), marks=rule("0-10/stream/optional")),
)
def test_command_of_absent_class_fails_with_not_implemented(
    server: Server, absent: str, command: Command
) -> None:
    server = Server(replace(server.state.personality, not_implemented=(absent,)))
    exception = server.session().declare("q").fails(command, 540)
    assert exception.description is not None and command.NAME in exception.description
    server.session(b"other").query("q")


@rule("0-10/dtx.start/join-unsupported")
def test_dtx_start_with_join_fails_with_540_when_joins_are_not_supported(server: Server) -> None:
    known = server.state.personality
    server = Server(replace(known, branches=replace(known.branches, joins=False)))
    one, other = server.session(b"one"), server.session(b"other")
    for session in (one, other):
        session.perform(x.DtxSelect())
    one.perform(x.DtxStart(xid=XID))
    exception = other.fails(x.DtxStart(xid=XID, join=True), 540)
    assert exception.description is not None and "without joining" in exception.description
    one.perform(x.DtxEnd(xid=XID))  # The branch goes on.
