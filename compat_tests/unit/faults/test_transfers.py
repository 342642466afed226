"""What 0-9 and 0-10 have in common: conditions on transfers, and clients that are redirected."""

from __future__ import annotations

import re
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_10 import c, structs
from compat_tests.unit.faults.amqp_0_9 import server as amqp_0_9
from compat_tests.unit.faults.amqp_0_10 import server as amqp_0_10
from fakeamqp.faults import FaultError, Faults, UnusedFault
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared

HEADERS = {"shop": "north", "n": 1}
WANTED: list[dict[str, Any]] = [
    {"exchange": "e"},
    {"destination": "e"},
    {"routing_key": "a.*"},
    {"routing_key": re.compile("^a")},
    {"queue": "q"},
    {"exchange_type": "topic"},
    {"body": b"two apples"},
    {"body": re.compile("apples")},
    {"headers": {"shop": "north"}},
    {"content_type": "text/plain"},
    {"priority": 4},
    {"ttl": 5000},
    {"correlation_id": "c-1"},
    {"body": lambda body: len(body) == 10},
]
OF_ALL: dict[str, list[dict[str, Any]]] = {
    "0-9": [{"channel": 1}, {"protocol": "0-9"}, {"part": "header"}],
    "0-10": [{"channel": 0}, {"protocol": "0-10"}, {"session": "shop"}, {"accept_mode": 1}],
}
"""What both transfers of a protocol meet."""


def transfer_0_9(server: amqp_0_9.FaultServer, reserved: bool) -> None:
    requester = server.requester(reserved=reserved)
    requester.client.call(m.ExchangeDeclare(exchange="e", type="topic"), m.ExchangeDeclareOk)
    requester.client.bind("q", "e", "#")
    requester.client.declare("other")
    requester.publish("other", b"other")
    properties = {"priority": 4, "ttl": 5000, "correlation_id": "c-1", "content_type": "text/plain"}
    requester.publish("a.b", b"two apples", destination="e", application_headers=HEADERS, **properties)


def transfer_0_10(server: amqp_0_10.FaultServer) -> None:
    session = server.session_with("q", b"shop")
    session.declare_exchange("e", "topic")
    session.bind("q", "e", "#")
    session.publish(b"other", key="other", exchange="amq.fanout")
    message = structs.MessageProperties(
        content_type="text/plain", correlation_id=b"c-1", application_headers=HEADERS
    )
    session.publish(b"two apples", exchange="e", key="a.b", priority=4, ttl=5000, message=message)


@pytest.mark.parametrize(
    ("client", "wanted"),
    [
        *(("0-9", each) for each in [*WANTED, {"expiration": "5000"}, *OF_ALL["0-9"]]),
        *(("0-9 without reserved bytes", each) for each in WANTED),
        *(("0-10", each) for each in [*WANTED, *OF_ALL["0-10"]]),
    ],
    ids=lambda value: re.sub(r" at 0x[0-9a-f]+", "", str(value)),
)
def test_rule_fires_on_a_transfer_that_meets_its_condition(client: str, wanted: dict[str, Any]) -> None:
    server: Any = amqp_0_10.FaultServer() if client == "0-10" else amqp_0_9.FaultServer()
    rule = server.faults.on("message.transfer", **wanted)
    if client == "0-10":
        transfer_0_10(server)
    else:
        transfer_0_9(server, reserved=client == "0-9")
    assert rule.hits == (2 if wanted in OF_ALL.get(client, ()) else 1)


def answer_to_open(server: Any, insist: bool = False) -> Any:
    """What a new client is told when it opens a virtual host."""
    if isinstance(server, amqp_0_10.FaultServer):
        client = server.dial()
        client.begin()
        client.login()
        client.send(c.ConnectionTuneOk())
        client.send(c.ConnectionOpen(virtual_host="/", insist=insist))
        return client.take().what
    client = server.connect()
    client.send_bytes(client.protocol_header)
    client.expect(shared.ConnectionStart, 0)
    client.login()
    client.expect(shared.ConnectionTune, 0)
    client.send(m.ConnectionTuneOk(channel_max=2047, frame_max=131072), 0)
    client.send(m.ConnectionOpen(virtual_host="/", insist=insist), 0)
    return client.take_frame().method


@pytest.mark.parametrize(
    ("server", "known_hosts"),
    [(amqp_0_9.FaultServer(), "third.example"), (amqp_0_10.FaultServer(), ["third.example"])],
    ids=["0-9", "0-10"],
)
def test_redirected_client_gets_connection_redirect_unless_it_insists(server: Any, known_hosts: Any) -> None:
    redirection = server.faults.redirect("other.example:5673", known_hosts=["third.example"])
    redirect = answer_to_open(server)
    assert redirect.NAME == "connection.redirect"
    assert (redirect.host, redirect.known_hosts) == ("other.example:5673", known_hosts)
    assert redirection.hits == 1
    assert str(redirection).startswith("clients that open a connection are redirected to other.example:5673")
    assert answer_to_open(server, insist=True).NAME == "connection.open-ok"
    redirection.remove()
    assert answer_to_open(server).NAME == "connection.open-ok"
    assert redirection.hits == 1


def test_latest_of_several_redirections_applies() -> None:
    server = amqp_0_10.FaultServer()
    server.faults.redirect("one")
    two = server.faults.redirect("two")
    assert answer_to_open(server).host == "two"
    two.remove()
    assert answer_to_open(server).host == "one"
    server.faults.clear()
    assert answer_to_open(server).NAME == "connection.open-ok"


def test_verify_reports_an_unused_redirection(faults: Faults) -> None:
    faults.redirect("other.example")
    with pytest.raises(UnusedFault, match=r"redirected to other\.example"):
        faults.verify()


@pytest.mark.parametrize("host", ["", "x" * 256, 5672])
def test_redirection_to_an_invalid_host_is_an_error(faults: Faults, host: str) -> None:
    with pytest.raises(FaultError, match="named by a str"):
        faults.redirect(host)
    assert not faults.rules
