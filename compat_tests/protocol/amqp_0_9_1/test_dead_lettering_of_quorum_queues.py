"""Dead letters of quorum queues, at most once and at least once (RabbitMQ: documented; measured)."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.quorum import ALL, RABBITMQ, client_of, counts, declare
from compat_tests.scripted.amqp_0_9_1 import Client, Content, Server
from compat_tests.tools.matrix import rows
from fakeamqp.model.arguments.queue_arguments import QueueOptions
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

TO_DEAD = {"dead_letter_exchange": "", "dead_letter_routing_key": "dead"}
HELD = {**TO_DEAD, "dead_letter_strategy": "at-least-once", "overflow": "reject-publish"}
THREE_MINUTES = 180


def deaths(content: Content | None) -> list[tuple[str, str, int]]:
    """Reason, queue and count of the deaths of a message, the latest first."""
    assert content is not None
    return [
        (each["reason"], each["queue"], each["count"])
        for each in (content.properties.headers or {})["x-death"]
    ]


def retries(server: Server) -> list[str]:
    """What is to be tried again."""
    return [timer.words for timer in server.state.timers.pending() if "again" in timer.words]


def rejected(client: Client, *bodies: bytes, queue: str = "q") -> Client:
    """Publish, get and reject."""
    client.fill(queue, *bodies)
    for _ in bodies:
        content = client.fetch(queue)
        client.reject(content.method.delivery_tag)
    return client


# --- at most once -------------------------------------------------------------------------------------------
@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", ALL)
def test_messages_are_dead_lettered_as_rejected_delivery_limit_maxlen_and_expired(name: str) -> None:
    server = Server(name)
    client = server.client().declare("dead", durable=True)
    declare(client, **TO_DEAD, max_length=1, message_ttl=1000, delivery_limit=0)
    rejected(client, b"rejected").fill("q", b"limit").get("q")
    client.reject(2, requeue=True).fill("q", b"maxlen", b"expired")
    server.advance(1)
    got = [client.get("dead", no_ack=True) for _ in range(4)]
    assert [(each.body, deaths(each)) for each in got if each] == [
        (b"rejected", [("rejected", "q", 1)]),
        (b"limit", [("delivery_limit", "q", 1)]),
        (b"maxlen", [("maxlen", "q", 1)]),
        (b"expired", [("expired", "q", 1)]),
    ]


@pytest.mark.parametrize("name", RABBITMQ)
def test_dead_letter_has_no_delivery_count_of_its_former_queue(name: str) -> None:
    client = client_of(name, **TO_DEAD, delivery_limit=1).declare("dead", durable=True).fill("q", b"1")
    for _ in range(2):
        content = client.get("q")
        assert content is not None
        client.reject(content.method.delivery_tag, requeue=True)
    content = client.get("dead")
    assert content is not None
    # The flag stays in 4.3 (measured on 4.3.6), the headers do not.
    assert counts(content) == (name == "rabbitmq-4.3", None, None)


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("name", RABBITMQ)
def test_messages_dropped_together_are_dead_lettered_in_their_order(name: str) -> None:
    server = Server(name)
    client = server.client().declare("dead", durable=True)
    declare(client, **TO_DEAD).fill("q", b"1", b"2", b"3")
    options = QueueOptions(dead_letter_exchange="", dead_letter_routing_key="dead", max_length=0)
    server.vhost.queues["q"].apply(options)
    assert client.empty("dead") == [b"1", b"2", b"3"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_dead_letter_to_missing_exchange_is_dropped(name: str) -> None:
    client = client_of(name, dead_letter_exchange="missing")
    assert rejected(client, b"1").count("q") == 0


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
def test_dead_letter_cycle_is_broken_if_expired_and_not_if_rejected(name: str) -> None:
    server = Server(name)
    client = declare(server.client(), dead_letter_exchange="", message_ttl=1000)
    assert client.fill("q", b"1").after(1).count("q") == 0
    assert rejected(client, b"2").count("q") == 1


@pytest.mark.parametrize("name", ALL)
def test_full_quorum_queue_with_reject_publish_accepts_dead_letters(name: str) -> None:
    client = declare(client_of(name, **TO_DEAD), "dead", max_length=1, overflow="reject-publish")
    client.fill("dead", b"1", b"2", b"refused")
    assert rejected(client, b"3").empty("dead") == [b"1", b"2", b"3"]


# --- failures that dead letters bring along -----------------------------------------------------------------
@rows(
    "name, by_reject, by_nack",
    ("rabbitmq-3.13", (False, None, None), (False, None, None)),
    ("rabbitmq-4.0", (True, 1, None), (True, 1, None)),
    ("rabbitmq-4.2", (True, 1, None), (True, 1, None)),
    ("rabbitmq-4.3", (True, 1, 1), (False, None, None)),
)
def test_dead_letter_in_quorum_queue_keeps_delivery_counts_since_4_0(
    name: str, by_reject: tuple[Any, ...], by_nack: tuple[Any, ...]
) -> None:
    client = declare(client_of(name, **TO_DEAD), "dead")
    client.fill("q", b"1", b"2").get("q")
    client.get("q")
    client.reject(1).nack(2, requeue=False)
    for expected in (by_reject, by_nack):
        content = client.get("dead")
        assert content is not None
        assert counts(content) == expected


@rows("name, expected", ("rabbitmq-4.2", (True, 1, None)), ("rabbitmq-4.3", (True, 2, 1)))
def test_requeued_dead_letter_keeps_delivery_count_since_4_3(name: str, expected: tuple[Any, ...]) -> None:
    client = declare(client_of(name, **TO_DEAD), "dead")
    content = rejected(client, b"1").get("dead")
    assert content is not None
    content = client.reject(content.method.delivery_tag, requeue=True).get("dead")
    assert content is not None
    assert counts(content) == expected


@pytest.mark.needs("personality rabbitmq-4.3")
def test_failures_in_former_queue_count_against_delivery_limit_since_4_3() -> None:
    client = declare(client_of("rabbitmq-4.3", **TO_DEAD), "dead", delivery_limit=1)
    content = rejected(client, b"1").get("dead")
    assert content is not None
    assert client.reject(content.method.delivery_tag, requeue=True).count("dead") == 0


@pytest.mark.needs("virtual time", "personality rabbitmq-4.2")
def test_classic_queue_passes_delivery_count_on_without_redelivered_flag() -> None:
    server = Server("rabbitmq-4.2")
    client = declare(server.client(), **TO_DEAD)
    client.declare(
        "dead",
        arguments={"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "last"},
    )
    declare(client, "last")
    content = rejected(client, b"1").fetch("dead")
    assert not content.method.redelivered
    content = client.nack(content.method.delivery_tag).after(1).fetch("last")
    assert counts(content) == (True, 1, None)


# --- at least once ------------------------------------------------------------------------------------------
def holding(name: str, **asked: Any) -> Client:
    return declare(Server(name).client(), **{**HELD, **asked})


@pytest.mark.parametrize("name", ALL)
def test_at_least_once_dead_letters_arrive_with_x_death(name: str) -> None:
    client = holding(name).declare("dead", durable=True)
    content = rejected(client, b"1", b"2").get("dead", no_ack=True)
    assert deaths(content) == [("rejected", "q", 1)]
    assert client.empty("dead") == [b"2"]


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", ALL)
def test_unroutable_at_least_once_dead_letter_is_retried_after_three_minutes(name: str) -> None:
    client = rejected(holding(name), b"1")
    assert client.declare("dead", durable=True).after(THREE_MINUTES - 1).count("dead") == 0
    content = client.after(1).get("dead", no_ack=True)
    assert deaths(content) == [("rejected", "q", 1)]
    assert client.after(THREE_MINUTES).count("dead") == 0
    assert not retries(client.server)


@pytest.mark.needs("virtual time", "personality rabbitmq-4.2")
def test_held_dead_letter_is_routed_after_its_exchange_is_declared() -> None:
    client = holding("rabbitmq-4.2", dead_letter_exchange="late").declare("dead", durable=True)
    rejected(client, b"1").declare_exchange("late", "fanout")
    assert client.bind("dead", "late").count("dead") == 0
    rejected(client, b"2")  # Every one goes by the routes there are.
    assert client.empty("dead") == [b"2"]
    assert client.after(THREE_MINUTES).empty("dead") == [b"1"]


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_held_dead_letter_is_retried_when_queue_options_change() -> None:
    client = holding("rabbitmq-4.2", dead_letter_routing_key="nowhere").declare("dead", durable=True)
    options = rejected(client, b"1").server.vhost.queues["q"].options
    client.server.vhost.queues["q"].apply(
        QueueOptions(
            dead_letter_exchange="",
            dead_letter_routing_key="dead",
            dead_letter_strategy="at-least-once",
            overflow="reject-publish",
        )
    )
    assert options.dead_letter_routing_key == "nowhere"
    assert client.empty("dead") == [b"1"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_held_dead_letters_are_not_counted_and_cannot_be_got(name: str) -> None:
    client = holding(name)
    assert rejected(client, b"1").count("q") == 0
    assert client.get("q") is None
    assert client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk).message_count == 0


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize(("name", "purged", "later"), [("rabbitmq-4.2", 1, [b"1"]), ("rabbitmq-4.3", 2, [])])
def test_purge_removes_held_dead_letters_since_4_3(name: str, purged: int, later: list[bytes]) -> None:
    client = rejected(holding(name), b"1").fill("q", b"2")
    assert client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk).message_count == purged
    assert client.declare("dead", durable=True).after(THREE_MINUTES).empty("dead") == later


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
def test_held_dead_letters_count_against_x_max_length(name: str) -> None:
    client = holding(name, max_length=2)
    rejected(client, b"1", b"2").perform(m.ConfirmSelect())
    client.fill("q", b"3").expect(m.BasicAck)
    client.fill("q", b"4").expect(m.BasicNack)
    assert client.declare("dead", durable=True).after(THREE_MINUTES).empty("dead") == [b"1", b"2"]
    client.fill("q", b"5")  # There is room again.
    client.expect(m.BasicAck)


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize(
    "asked",
    [{"overflow": "drop-head"}, {"overflow": "reject-publish-dlx"}, {"dead_letter_strategy": "at-most-once"}],
)
@pytest.mark.parametrize("name", RABBITMQ)
def test_dead_letters_are_held_by_at_least_once_with_reject_publish(name: str, asked: dict[str, str]) -> None:
    client = rejected(holding(name, **asked), b"1")
    assert client.declare("dead", durable=True).after(THREE_MINUTES).count("dead") == 0


@pytest.mark.parametrize("name", RABBITMQ)
def test_at_least_once_without_dead_letter_exchange_has_no_effect(name: str) -> None:
    client = client_of(name, dead_letter_strategy="at-least-once", overflow="reject-publish")
    assert rejected(client, b"1").count("q") == 0


@pytest.mark.needs("virtual time", "personality rabbitmq-4.2")
@pytest.mark.parametrize(("stuck", "arrives"), [(31, 1), (32, 0)])
def test_at_most_32_held_dead_letters_are_in_flight(stuck: int, arrives: int) -> None:
    client = rejected(holding("rabbitmq-4.2"), *[b"%d" % number for number in range(stuck)])
    client.declare("dead", durable=True)
    assert rejected(client, b"last").count("dead") == arrives
    assert client.after(THREE_MINUTES).count("dead") == stuck + 1


@pytest.mark.needs("personality rabbitmq-4.2")
def test_dead_letter_is_accepted_by_full_queue_that_refuses_its_publisher() -> None:
    client = declare(holding("rabbitmq-4.2"), "dead", max_length=2, overflow="reject-publish")
    assert client.fill("dead", b"1", b"2", b"3", b"refused").get("dead", no_ack=True) is not None
    client.fill("dead", b"refused, too")
    assert rejected(client, b"4").empty("dead") == [b"2", b"3", b"4"]


@pytest.mark.needs("virtual time", "personality rabbitmq-4.2")
def test_bytes_of_held_dead_letters_count_against_x_max_length_bytes() -> None:
    client = holding("rabbitmq-4.2", max_length_bytes=5)
    rejected(client, b"12345").perform(m.ConfirmSelect())
    client.fill("q", b"6").expect(m.BasicAck)
    client.fill("q", b"7").expect(m.BasicNack)
    client.declare("dead", durable=True).after(THREE_MINUTES).fill("q", b"8", b"9")
    assert [type(client.take_frame().method) for _ in range(2)] == [m.BasicAck, m.BasicAck]


def holding_for_a_full_queue() -> Server:
    """A broker whose queue "q" holds a dead letter that queue "other" has, and that queue "full" refuses."""
    client = holding("rabbitmq-4.2", dead_letter_exchange="amq.fanout")
    declare(client, "full", max_length=0, overflow="reject-publish")
    declare(client, "other")
    client.bind("full", "amq.fanout").bind("other", "amq.fanout").fill("full", b"before")
    rejected(client, b"1")
    return client.server


@pytest.mark.needs("restart", "inspection", "personality rabbitmq-4.2")
def test_held_dead_letter_goes_to_all_queues_again_after_restart() -> None:
    server = holding_for_a_full_queue()
    server.restart()
    assert server.client().empty("other") == [b"1", b"1"]


@pytest.mark.needs("virtual time", "restart", "inspection", "personality rabbitmq-4.2")
def test_held_dead_letter_gets_new_x_death_time_after_restart() -> None:
    server = holding_for_a_full_queue()
    server.advance(60)
    client = server.restart().client()
    times = []
    for _ in range(2):
        content = client.fetch("other")
        times.append((content.properties.headers or {})["x-death"][0]["time"])
    assert times[1] - times[0] == 60


@pytest.mark.needs("virtual time", "personality rabbitmq-4.2")
def test_held_dead_letter_is_retried_only_for_the_full_queue() -> None:
    client = holding("rabbitmq-4.2", dead_letter_exchange="amq.fanout")
    declare(client, "full", max_length=0, overflow="reject-publish")
    client.declare("other", durable=True).bind("full", "amq.fanout")
    client.bind("other", "amq.fanout").fill("full", b"before")
    assert rejected(client, b"1").empty("other") == [b"1"]
    assert client.empty("full") == [b"before"]
    assert client.after(THREE_MINUTES).empty("full") == [b"1"]
    assert client.empty("other") == []
    assert client.after(THREE_MINUTES).count("full") == 0


@pytest.mark.needs("virtual time", "personality rabbitmq-4.2")
def test_held_dead_letter_is_released_when_the_full_queue_was_deleted() -> None:
    client = holding("rabbitmq-4.2", dead_letter_exchange="amq.fanout")
    declare(client, "full", max_length=0, overflow="reject-publish")
    client.declare("other", durable=True).bind("full", "amq.fanout")
    client.bind("other", "amq.fanout").fill("full", b"before")
    rejected(client, b"1")
    for queue in ("full", "other"):
        client.perform(m.QueueDelete(queue=queue))
    client.server.advance(THREE_MINUTES)
    assert not retries(client.server)


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
def test_expired_dead_letter_that_would_cycle_is_held(name: str) -> None:
    client = holding(name, dead_letter_routing_key="q", message_ttl=1000)
    assert client.fill("q", b"1").after(1).count("q") == 0
    assert client.after(THREE_MINUTES).count("q") == 0
    assert retries(client.server) == ["q 'q' sends 1 held dead letters again"]


@pytest.mark.needs("virtual time", "personality rabbitmq-4.2")
def test_held_dead_letter_is_deleted_with_its_queue() -> None:
    client = holding("rabbitmq-4.2")
    rejected(client, b"1").perform(m.QueueDelete(queue="q"))
    assert client.declare("dead", durable=True).after(THREE_MINUTES).count("dead") == 0
    assert not retries(client.server)


@pytest.mark.needs("virtual time", "inspection", "personality rabbitmq-4.2")
def test_held_dead_letter_is_dropped_when_strategy_is_no_longer_at_least_once() -> None:
    client = rejected(holding("rabbitmq-4.2"), b"1")
    client.server.vhost.queues["q"].apply(
        QueueOptions(dead_letter_exchange="", dead_letter_routing_key="dead")
    )
    assert client.declare("dead", durable=True).after(THREE_MINUTES).count("dead") == 0


@pytest.mark.needs("restart", "inspection", "personality rabbitmq-4.2")
def test_held_dead_letter_survives_a_restart() -> None:
    client = rejected(holding("rabbitmq-4.2"), b"1")
    client.declare("dead", durable=True).server.restart()
    assert client.server.client().empty("dead") == [b"1"]


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
def test_expired_messages_and_messages_above_delivery_limit_are_held_as_dead_letters(name: str) -> None:
    client = holding(name, message_ttl=1000, delivery_limit=0)
    client.fill("q", b"limit", b"expired").get("q")
    client.reject(1, requeue=True).after(1).declare("dead", durable=True)
    client.server.advance(THREE_MINUTES)
    got = [client.get("dead", no_ack=True) for _ in range(2)]
    assert [deaths(each)[0][0] for each in got] == ["delivery_limit", "expired"]


@pytest.mark.needs("personality rabbitmq-4.2")
def test_at_least_once_dead_letter_keeps_its_delivery_count() -> None:
    client = declare(holding("rabbitmq-4.2"), "dead")
    content = rejected(client, b"1").fetch("dead")
    assert counts(content) == (True, 1, None)
