"""Faults that only chaos draws."""

from __future__ import annotations

import re
from contextlib import suppress
from random import Random

import pika
import pytest

from compat_tests.tools.matrix import cases
from compat_tests.unit.faults.server import FaultServer
from fakeamqp import Broker
from fakeamqp.faults.chaos import MethodPlace, actions_of, head_of, parse_plan
from fakeamqp.faults.errors import FaultError
from fakeamqp.model.access import Permission
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


def test_chaos_cancels_the_consumers_of_the_queue_that_a_delivery_came_from(
    server: FaultServer,
) -> None:
    """In its virtual host, and of no other queue."""
    capable = {"capabilities": {"consumer_cancel_notify": True}}
    server.state.add_virtual_host("shop")
    server.state.access.users["guest"].permissions["shop"] = Permission()
    elsewhere = server.client(client_properties=capable)
    client = server.client(client_properties=capable, virtual_host="shop")
    for each in (elsewhere, client):
        for queue in ("q", "other"):
            each.declare(queue)
            each.consume(queue, f"of-{queue}")
    client.fill("q", b"m")
    tag = client.delivery().method.delivery_tag
    server.faults.chaos(1, {"cancel-consumers": 1.0})
    client.ack(tag)
    server.settle()
    assert client.expect(m.BasicCancel).consumer_tag == "of-q"
    client.expect_nothing()
    elsewhere.expect_nothing()
    queues = server.state.virtual_hosts["shop"].queues
    assert [len(queues[name].subscriptions) for name in ("q", "other")] == [0, 1]


def test_chaos_on_an_ack_for_a_queue_without_consumers_cancels_no_consumer(server: FaultServer) -> None:
    client = server.client_with("q")
    client.fill("q", b"m")
    client.send(m.BasicGet(queue="q"))
    tag = client.expect(m.BasicGetOk).delivery_tag
    client.inbox.clear()
    server.faults.chaos(1, {"cancel-consumers": 1.0})
    client.ack(tag)
    server.settle()
    assert not any("has failed" in each for each in server.said)
    client.expect_nothing()
    assert len(server.state.virtual_hosts["/"].queues["q"].unacked) == 0


def test_chaos_restarts_the_broker_without_a_crash(server: FaultServer) -> None:
    client = server.client()
    server.faults.chaos(1, {"restart": 1.0})
    client.publish()
    assert server.restarts == []
    server.settle()
    assert server.restarts == [(False, True)]


def test_restart_that_fails_is_reported_with_its_rule(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restart(**_how: bool) -> None:
        raise OSError("no")

    monkeypatch.setattr(server, "restart", restart)
    server.faults.chaos(1, {"restart": 1.0})
    server.client().publish()
    server.settle()
    assert any("has failed" in each for each in server.said)


DRAWN = {  # With the seeds 1 and 5.
    "lost-publish": (
        "drop it, then reset its connection 0.11 s later",
        "drop it, then reset its connection 0.33 s later",
    ),
    "late-publish": ("delay it by 0.0076 s", "delay it by 0.0315 s"),
    "cut-delivery": (
        "send 8 bytes of it, then end its connection",
        "send it as far as its header, then reset its connection",
    ),
    "disconnect": ("pass it on, then end its connection", "pass it on, then reset its connection"),
    "broken-handshake": ("end its connection", "reset its connection"),
    "stall": ("stall its connection for 0.084 s", "stall its connection for 0.319 s"),
    "slow": ("delay its bytes by 0.0036 s for 0.427 s", "delay its bytes by 0.0128 s for 0.376 s"),
    "slices": (
        "slice its bytes into pieces of 9 for 0.293 s",
        "slice its bytes into pieces of 40 for 0.143 s",
    ),
    "alarm": ("sound an alarm for 0.084 s", "sound an alarm for 0.319 s"),
    "flow": ("stop its channel for 0.084 s", "stop its channel for 0.319 s"),
    "close-channel": (
        "pass it on, then close its channel with 404",
        "close its channel with 406 before its answer",
    ),
    "close-connection": (
        "pass it on, then close its connection with 320",
        "close its connection with 541 before its answer",
    ),
    "failed-command": (
        "answer it with the exception not-found",
        "answer it with the exception resource-limit-exceeded",
    ),
    "forced-close": (
        "pass it on, then close its connection with 320",
        "pass it on, then close its connection with 501",
    ),
    "crash": ("crash the broker", "pass it on, then crash the broker"),
}


def test_seed_of_chaos_draws_the_same_actions_in_every_release() -> None:
    with cases() as case:
        for name, words in DRAWN.items():
            with case(name):
                made = [actions_of(name, Random(seed)) for seed in (1, 5)]
                assert tuple(", then ".join(action.words for action in each) for each in made) == words


CHOICES = {
    "close-channel": [
        words.format(f"close its channel with {code}")
        for code in (404, 405, 406)
        for words in ("{}", "{} before its answer", "pass it on, then {}")
    ],
    "close-connection": [
        words.format(f"close its connection with {code}")
        for code in (320, 501, 541)
        for words in ("{}", "{} before its answer", "pass it on, then {}")
    ],
    "forced-close": [
        words.format(f"close its connection with {code}")
        for code in (320, 501)
        for words in ("{}", "{} before its answer", "pass it on, then {}")
    ],
    "failed-command": [
        f"answer it with the exception {name}"
        for name in ("not-found", "resource-locked", "resource-limit-exceeded")
    ],
    "broken-handshake": ["end its connection", "reset its connection"],
    "malformed": [
        "malform it: of an unknown method",
        "malform it: its first frame is of an unknown type",
        "malform it: the last byte of its last frame is not the frame end",
    ],
}


def test_every_variant_of_a_chaos_fault_is_drawn_within_200_seeds() -> None:
    with cases() as case:
        for name, choices in CHOICES.items():
            with case(name):
                drawn = {actions_of(name, Random(seed))[0].words for seed in range(200)}
                assert sorted(drawn) == sorted(choices)


def test_a_plan_names_a_connection_by_its_client_or_by_its_number(server: FaultServer) -> None:
    """Also in the method in which the client tells its name."""
    chaos = server.faults.chaos(1, {"refused-login": 1.0})
    for name in ("app", 5, None):
        with suppress(AssertionError, IndexError):  # The login is refused.
            server.client(client_properties={} if name is None else {"connection_name": name})
    lines = chaos.plan.splitlines()[1:]
    assert [line.partition(": received connection.start-ok number 1 on channel 0")[0] for line in lines] == [
        *("connection 'app'", "connection number 2", "connection number 3")
    ]


def test_flow_fault_of_chaos_stops_a_channel_for_a_while_unless_it_has_closed(server: FaultServer) -> None:
    client = server.client()
    client.call(m.ChannelOpen(), m.ChannelOpenOk, channel=2)
    chaos = server.faults.chaos(1, {"flow": 1.0})
    client.publish()
    client.publish(channel=2)
    client.call(m.ChannelClose(200, "", 0, 0), m.ChannelCloseOk, channel=2)
    server.settle()
    assert client.expect(m.ChannelFlow).active is False
    client.send(m.ChannelFlowOk(False))
    server.advance(0.5)
    assert client.expect(m.ChannelFlow).active is True
    client.expect_nothing()
    assert chaos.hits == 2


def test_temporary_faults_of_chaos_end_when_chaos_is_removed(server: FaultServer) -> None:
    client = server.client()
    chaos = server.faults.chaos(1, {"alarm": 1.0})
    client.publish()
    server.settle()
    assert server.state.blocked_reason == "low on memory"
    assert len(server.faults.rules) == 2
    chaos.remove()
    assert server.state.blocked_reason is None
    assert server.faults.rules == ()
    assert not [each for each in server.state.timers.pending() if "fault" in each.words]
    assert server.state.tap is server.recorder


def test_chaos_removed_by_a_condition_of_another_rule_has_no_further_effect(server: FaultServer) -> None:
    client = server.client_with("q")
    server.faults.on("basic.publish", body=lambda _: chaos.remove(), optional=True).drop()
    chaos = server.faults.chaos(1, {"lost-publish": 1.0})
    client.publish(b"m", routing_key="q")
    assert (chaos.hits, len(server.vhost.queues["q"].ready)) == (0, 1)


def test_a_lost_publish_is_followed_by_the_reset_of_its_connection(server: FaultServer) -> None:
    client = server.client_with("q")
    chaos = server.faults.chaos(1, {"lost-publish": 1.0})
    client.publish(b"m", routing_key="q")
    assert len(server.vhost.queues["q"].ready) == 0
    assert not client.connection.finished
    server.advance(0.5)
    assert client.connection.finished and client.connection.resets
    chaos.remove()


def test_a_plan_is_played_again_with_faults_of_any_profile(server: FaultServer) -> None:
    def play(**how: object) -> tuple[str, str]:
        client = server.client_with("q", client_properties={"connection_name": "app"})
        chaos = server.faults.chaos(**how)  # type: ignore[arg-type]
        for _ in range(10):
            client.publish(b"m", routing_key="q")
            server.advance(0.05)
        client.send(m.BasicGet(queue="q", no_ack=True))
        plan, sentence = chaos.plan, chaos.sentence
        chaos.remove()
        return plan, sentence

    first, said = play(seed=7, profile={"malformed": 1.0, "late-publish": 0.3})
    head, *lines = first.splitlines()
    assert head == "# seed 7, profile a profile of its own"
    assert said == f"faults at random (seed 7, a profile of its own), {len(lines)} so far"
    assert 1 < len(lines) < 11 and "basic.get-ok number 1 on channel 1: malformed" in lines[-1]
    for seed in (0, 7):
        again, said = play(seed=seed, plan=first)
        assert again == first
        assert said == f"faults at random (a given plan), {len(lines)} so far"


def test_the_intensity_multiplies_all_probabilities(server: FaultServer) -> None:
    counts = []
    for intensity in (0, 0.5, 1, 2):
        client = server.client(client_properties={"connection_name": "app"})
        chaos = server.faults.chaos(3, {"return": 0.25}, intensity=intensity)
        for _ in range(200):
            client.publish()
        counts.append(chaos.hits)
        chaos.remove()
    assert counts[0] == 0 and counts == sorted(counts)
    assert [round(count / 200, 1) for count in counts] == [0, 0.1, 0.2, 0.5]


def test_chaos_slows_slices_and_stalls_a_connection_for_a_while() -> None:
    with Broker(clock="virtual") as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        name = broker.connections[0].name
        for fault, sentence in (
            ("slow", rf"bytes to and from connection '{name}' take 0\.0\d+ s"),
            ("slices", rf"the stream to and from connection '{name}' comes in pieces of \d+ bytes"),
            ("stall", rf"the broker hangs: no bytes pass to or from connection '{name}'"),
        ):
            chaos = broker.faults.chaos(1, {fault: 1.0})
            channel.basic_publish("", "nowhere", b"")
            broker.wait_for(lambda: broker.faults.network.faults, timeout=30)
            chaos_hits = chaos.hits
            (made,) = broker.faults.network.faults
            assert re.fullmatch(sentence, made.sentence) and chaos_hits >= 1
            broker.clock.advance(0.5)
            assert broker.faults.network.faults == ()
            chaos.remove()
        connection.close()


def test_plans_are_read_with_and_without_a_head() -> None:
    line = "connection 'a': received basic.publish number 2 on channel 1: crash (crash the broker)"
    place = MethodPlace("'a'", "received", "basic.publish", 1, 2)
    assert parse_plan(f"# seed 1\n\n  # more\n  {line}\n") == {place: "crash"}
    assert str(place) == line.partition(": crash")[0]
    for plan, head in (
        ("", (5, "a given plan")),
        (line, (5, "a given plan")),
        ("# seed 7", (7, "a given plan")),
        ("\n# seed -7, profile mixed\n", (-7, "mixed")),
        ("# seed 'it\\'s', profile gentle", ("it's", "gentle")),
        ('# seed "x"', ("x", "a given plan")),
    ):
        assert head_of(plan, 5) == head
    for wrong in (
        line.replace("basic.publish", "basic.publsh"),
        line.replace("crash (", "crush ("),
        line.replace("received", "sent"),
        line.replace("basic.publish", "basic.ack"),
        line.replace("number 2", "number two"),
    ):
        with pytest.raises(FaultError, match="line 2 of the plan cannot be read"):
            parse_plan(f"{line}\n{wrong}")
