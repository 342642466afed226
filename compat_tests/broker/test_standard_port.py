"""The port registered for AMQP, where `fakeamqp serve` listens unless it is told otherwise.

A `Broker` in a test takes a free port, so that tests can run side by side.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress

import pytest

from fakeamqp import Broker
from fakeamqp.cli import main

STANDARD_PORT = 5672


@pytest.mark.rule("0-9/server-model/port")
def test_serve_without_a_port_reports_the_standard_port_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    with ExitStack() as sockets:
        # The port is in use then, by this socket or by another program, and the error names it.
        with suppress(OSError):
            sockets.enter_context(socket.create_server(("127.0.0.1", STANDARD_PORT)))
        code = main(["serve"])
    output, errors = capsys.readouterr()
    assert (code, output) == (1, "")
    assert f"port {STANDARD_PORT} on 127.0.0.1 is in use" in errors


@pytest.mark.rule("0-9/server-model/port")
def test_a_broker_in_a_test_leaves_the_standard_port_free() -> None:
    with Broker() as one, Broker() as other:
        assert len({one.port, other.port, STANDARD_PORT}) == 3
