"""Every action on every method of every protocol: it works, or the rule is refused when it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from compat_tests.tools.matrix import cases
from compat_tests.unit.faults import server as amqp_0_9_1
from compat_tests.unit.faults.amqp_0_9 import server as amqp_0_9
from compat_tests.unit.faults.amqp_0_10 import server as amqp_0_10
from compat_tests.unit.faults.amqp_1_0 import server as amqp_1_0
from fakeamqp.dialects import Direction, dialect_named
from fakeamqp.faults import FaultError, Rule
from fakeamqp.faults.rule import ACTIONS

ARGUMENTS: dict[str, dict[str, Any]] = {
    "delay": {"seconds": 1},
    "replace": {"channel": 1},
    "call": {"function": lambda group: None},
}
"""By action: what it needs. "malform" is tried in each way."""


def actions(protocol: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each action with its arguments."""
    for name in ACTIONS:
        if name != "malform":
            yield name, ARGUMENTS.get(name, {})
    for how in dialect_named(protocol).malformations:
        yield "malform", {"how": how}


def connected_091() -> tuple[Any, Any]:
    server = amqp_0_9_1.FaultServer()
    return server, server.publisher().client.connection


def connected_09() -> tuple[Any, Any]:
    server = amqp_0_9.FaultServer()
    client = server.client()
    client.declare("q")
    return server, client.connection


def connected_010() -> tuple[Any, Any]:
    server = amqp_0_10.FaultServer()
    session = server.session_with("q", b"shop")
    return server, session.client.connection


def connected_10() -> tuple[Any, Any]:
    server = amqp_1_0.FaultServer()
    client = server.session()
    client.sender(handle=0)
    client.receiver(handle=1, credit=10)
    return server, client.connection


PROTOCOLS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "0-9-1": connected_091,
    "0-9": connected_09,
    "0-10": connected_010,
    "1-0": connected_10,
}


def passes(server: Any, connection: Any, name: str, direction: Direction) -> None:
    """Have a method pass that has no arguments."""
    dialect = dialect_named(connection.protocol)
    if name == "heartbeat":
        octets = dialect.heartbeat
    else:
        kind = dialect.kinds[name]
        channel = 0 if name.startswith("connection.") else connection.fault_port.channels[0]
        body = b"x" if kind.has_content else None
        octets = dialect.encode(kind.make(), connection.fault_port, channel, body, {})
    if direction == "received":
        connection.receive(octets)
    else:
        server.state.tap.sending(connection, octets)
    server.advance(1)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_action_works_on_a_method_or_is_an_error(protocol: str) -> None:
    server, connection = PROTOCOLS[protocol]()
    dialect = dialect_named(protocol)
    methods = {
        "heartbeat": ("received", "sent"),
        **{name: kind.directions for name, kind in dialect.kinds.items()},
    }
    directed = [(name, direction) for name, directions in methods.items() for direction in sorted(directions)]
    fired = refused = 0
    with cases() as case:
        # Without a protocol, methods of the same name in other protocols are meant as well.
        for (name, direction), among, (action, arguments) in product(
            directed, (protocol, None), actions(protocol)
        ):
            with case(name, direction, among, action, *arguments.values()):
                rule: Rule = server.faults.on(name, direction=direction, protocol=among)
                try:
                    getattr(rule, action)(**arguments)
                except FaultError:
                    refused += 1
                    rule.remove()
                    continue
                passes(server, connection, name, direction)
                rule.release()
                rule.remove()
                assert rule.error is None, repr(rule.error)
                fired += rule.hits
                if not (connection.fault_port.open and connection.fault_port.channels):
                    server, connection = PROTOCOLS[protocol]()
    assert fired and refused
