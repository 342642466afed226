"""Faults that detach links, end sessions and close connections of 1.0, each with a condition."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, Client, attach, message
from compat_tests.unit.faults.amqp_1_0.server import FaultServer
from fakeamqp.faults import FaultError, Faults
from fakeamqp.protocols.amqp_1_0.codec import composites as c

WHY = "a fault that the test asked for"


@pytest.fixture
def faults(server: FaultServer) -> Faults:
    return server.faults


def test_detach_instead_of_an_attach_refuses_it(client: Client, faults: Faults) -> None:
    faults.on("attach", queue="q").detach("amqp:not-found", "no queue 'q'").once()
    _, error = client.refused(SENDER, "/queues/q")
    assert (error.condition, error.description) == ("amqp:not-found", "no queue 'q'")
    _, error = client.refused(RECEIVER, "/queues/missing")
    assert client.sender().publish() == c.Accepted()


def test_detach_instead_of_a_transfer_loses_it_and_leaves_the_session(
    server: FaultServer, client: Client, faults: Faults
) -> None:
    faults.on("transfer", body=b"bad").detach("com.example:poison", "no").once()
    one, other = client.sender(handle=0), client.sender(handle=1)
    one.transfer(message(b"bad"))
    client.expect_detach("com.example:poison", "no")
    assert other.publish(message(b"good")) == c.Accepted()
    assert server.bodies() == [b"good"]


def test_detach_before_the_answer_carries_the_transfer_out(
    server: FaultServer, client: Client, faults: Faults
) -> None:
    faults.on("transfer").detach(when="before").once()
    client.sender().transfer(message(b"x"))
    client.expect_detach("amqp:internal-error", WHY)
    client.expect_nothing()
    assert server.bodies() == [b"x"]


def test_detach_after_a_transfer_comes_behind_its_outcome(client: Client, faults: Faults) -> None:
    faults.on("transfer").detach("amqp:resource-deleted", when="after").once()
    sender = client.sender()
    sender.transfer(message(b"x"))
    assert sender.outcome() == c.Accepted()
    client.expect_detach("amqp:resource-deleted", WHY)


def test_detach_instead_of_a_delivery_returns_it_to_its_queue(
    server: FaultServer, client: Client, faults: Faults
) -> None:
    sender = client.sender(handle=0)
    sender.publish(message(b"x"))
    faults.on("transfer", direction="sent").detach("amqp:link:stolen").once()
    client.receiver(handle=1, credit=1)
    client.expect_nothing()
    server.settle()
    detach = client.expect(c.Detach)
    assert detach.handle == 1 and detach.error.condition == "amqp:link:stolen"
    assert server.bodies() == [b"x"]
    assert sender.publish(message(b"y")) == c.Accepted()


def test_detach_of_a_flow_without_link_does_nothing(client: Client, faults: Faults) -> None:
    rule = faults.on("flow").detach()
    client.send(c.Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1))
    client.expect_nothing()
    assert rule.hits == 1


def test_session_ends_with_the_condition_of_the_fault(client: Client, faults: Faults) -> None:
    faults.on("disposition").close_channel("amqp:session:errant-link", "so").once()
    client.receiver().settle(c.Accepted(), 0)
    client.expect_end("amqp:session:errant-link", "so")


def test_connection_closes_with_the_condition_of_the_fault(client: Client, faults: Faults) -> None:
    faults.on("begin").close_connection("amqp:connection:forced").once()
    client.send(c.Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), channel=1)
    client.expect_close("amqp:connection:forced", WHY)


@pytest.mark.parametrize(
    ("code", "condition"),
    [(404, "amqp:not-found"), (403, "amqp:unauthorized-access"), (299, "amqp:internal-error")],
)
def test_reply_code_stands_for_the_nearest_condition(
    client: Client, faults: Faults, code: int, condition: str
) -> None:
    faults.on("flow").close_channel(code).once()
    client.sender().flow(link_credit=1)
    client.expect_end(condition)


@pytest.mark.parametrize("how", ["close_channel", "close_connection", "detach"])
def test_misspelled_condition_names_the_near_match(faults: Faults, how: str) -> None:
    with pytest.raises(FaultError, match="did you mean 'amqp:not-found'"):
        getattr(faults.on("transfer"), how)("amqp:notfound")


def test_condition_for_another_protocol_is_an_error(faults: Faults) -> None:
    with pytest.raises(FaultError, match=r"a condition of AMQP 1\.0; a basic\.publish needs a reply code"):
        faults.on("basic.publish").close_channel("amqp:not-found")
    with pytest.raises(FaultError, match="attach and detach and flow and transfer"):
        faults.on("disposition").detach()
    with pytest.raises(FaultError, match="a condition is a str"):
        faults.on("transfer").detach(404)  # type: ignore[arg-type]


def test_returned_transfer_is_released(server: FaultServer, client: Client, faults: Faults) -> None:
    faults.on("transfer").return_message().once()
    sender = client.sender()
    assert sender.publish(message(b"x")) == c.Released()
    assert sender.publish(message(b"y")) == c.Accepted()
    assert server.bodies() == [b"y"]


def test_refused_login_has_the_outcome_of_a_wrong_password(server: FaultServer) -> None:
    server.faults.on("sasl-init").refuse_login().once()
    client = server.greeted().login()
    assert client.expect(c.SaslOutcome).code == 1
    server.advance(3)
    assert client.closed


def test_fault_that_refuses_an_attach_detaches_the_link_in_rabbitmq_4_0_too() -> None:
    server = FaultServer("rabbitmq-4.0")
    server.faults.on("attach").detach("amqp:not-found").once()
    client = server.session()
    client.send(attach(SENDER, "/queues/q"))
    client.expect(c.Attach)
    client.expect_detach("amqp:not-found", WHY)
