"""System exchanges over 0-10, whose text has none: a service of the test is there for all protocols."""

from __future__ import annotations

from compat_tests.scripted.amqp_0_10 import Server
from compat_tests.scripted.services import add_service, bodies
from fakeamqp.protocols.amqp_0_10.codec import commands as x


def test_transfer_to_system_exchange_reaches_service(server: Server) -> None:
    got = add_service(server, "s")
    session = server.session().publish(b"body", exchange="amq.system", key="s")
    assert session.call(x.ExchangeQuery(name="amq.system")).type == "system"
    server.advance(0)
    assert bodies(got) == [b"body"]


def test_transfer_refused_by_service_ends_session_with_540(server: Server) -> None:
    got = add_service(server, "s", "file")
    session = server.session().publish(b"body", exchange="amq.system", key="s")
    exception = session.expect(x.ExecutionException)
    assert exception.error_code == 540
    assert exception.description and "takes no contents of class basic" in exception.description
    server.advance(0)
    assert got == []
