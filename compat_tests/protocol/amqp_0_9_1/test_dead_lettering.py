"""Dead-lettering and its x-death header (RabbitMQ 4.2: documented; order and contents from its sources)."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Content, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.fixture
def client(rabbitmq: Server) -> Client:
    return rabbitmq.client()


def declare(
    client: Client, queue: str, exchange: str = "", key: str | None = None, **arguments: Any
) -> Client:
    """A queue that dead-letters; a keyword's underscores are hyphens."""
    table = {name.replace("_", "-"): value for name, value in arguments.items()}
    table["x-dead-letter-exchange"] = exchange
    if key is not None:
        table["x-dead-letter-routing-key"] = key
    return client.declare(queue, arguments=table)


def dead_end(client: Client) -> Client:
    """An exchange `dlx` that passes everything on to the queue `dead`."""
    client.declare("dead").declare_exchange("dlx", "fanout")
    return client.bind("dead", "dlx")


def reject(client: Client, queue: str) -> Client:
    """Take one message from a queue and refuse it."""
    got = client.fetch(queue)
    return client.reject(got.method.delivery_tag)


def take(client: Client, queue: str = "dead") -> Content:
    return client.fetch(queue, no_ack=True)


def headers(content: Content) -> dict[str, Any]:
    assert content.properties.headers is not None
    return content.properties.headers


def deaths(content: Content) -> list[tuple[str, str, int]]:
    return [(each["queue"], each["reason"], each["count"]) for each in headers(content)["x-death"]]


def summary(content: Content, which: str) -> tuple[str, str, str]:
    found = headers(content)
    return tuple(found[f"x-{which}-death-{what}"] for what in ("queue", "reason", "exchange"))  # type: ignore[return-value]


# --- the header --------------------------------------------------------------------------------------
@pytest.mark.needs("virtual time")
def test_dead_lettered_message_carries_x_death_and_first_and_last_death_headers(client: Client) -> None:
    dead_end(client)
    declare(client, "q", "dlx").bind("q", "amq.direct", "k")
    client.publish(b"m", exchange="amq.direct", routing_key="k", headers={"own": 1}, message_id="id")
    client.server.advance(5)
    reject(client, "q")
    dead = take(client)
    assert (dead.body, dead.method.exchange, dead.method.routing_key) == (b"m", "dlx", "k")
    assert (dead.method.redelivered, dead.properties.message_id) == (True, "id")
    assert headers(dead) == {
        "own": 1,
        "x-death": [
            {
                "count": 1,
                "reason": "rejected",
                "queue": "q",
                "time": int(client.server.clock.time()),
                "exchange": "amq.direct",
                "routing-keys": ["k"],
            }
        ],
        "x-first-death-exchange": "amq.direct",
        "x-first-death-queue": "q",
        "x-first-death-reason": "rejected",
        "x-last-death-exchange": "amq.direct",
        "x-last-death-queue": "q",
        "x-last-death-reason": "rejected",
    }


def test_x_death_count_is_a_64_bit_integer(client: Client) -> None:
    dead_end(client)
    declare(client, "q", "dlx").fill("q", b"m")
    reject(client, "q").send(m.BasicGet(queue="dead")).expect(m.BasicGetOk)
    assert b"\x05countl\0\0\0\0\0\0\0\x01" in client.take_frame().payload


@pytest.mark.needs("virtual time")
def test_x_death_entry_fields_are_in_the_order_of_rabbitmq(rabbitmq: Server, client: Client) -> None:
    dead_end(client)
    declare(client, "q", "dlx").publish(routing_key="q", expiration="1000")
    rabbitmq.advance(1)
    (entry,) = headers(take(client))["x-death"]
    names = ["original-expiration", "count", "reason", "queue", "time", "exchange", "routing-keys"]
    assert list(entry) == names


def test_dead_lettered_message_without_headers_receives_x_death(client: Client) -> None:
    dead_end(client)
    declare(client, "q", "dlx").fill("q", b"m")
    reject(client, "q")
    assert "x-death" in headers(take(client))


@pytest.mark.needs("virtual time")
def test_x_death_entry_keeps_the_time_of_its_first_death(rabbitmq: Server, client: Client) -> None:
    declare(client, "q", "", "q").fill("q", b"m")
    first = int(rabbitmq.clock.time())
    for _ in range(3):
        reject(client, "q")
        rabbitmq.advance(10)
    (entry,) = headers(take(client, "q"))["x-death"]
    assert (entry["count"], entry["time"]) == (3, first)


# --- reasons -----------------------------------------------------------------------------------------
@pytest.mark.needs("virtual time")
def test_message_expired_by_queue_ttl_is_dead_lettered_with_reason_expired(client: Client) -> None:
    dead_end(client)
    declare(client, "q", "dlx", x_message_ttl=1000).fill("q", b"m")
    client.server.advance(1)
    dead = take(client)
    assert deaths(dead) == [("q", "expired", 1)]
    assert "original-expiration" not in headers(dead)["x-death"][0]


@pytest.mark.needs("virtual time")
def test_dead_lettering_moves_expiration_to_original_expiration(rabbitmq: Server, client: Client) -> None:
    client.declare("dead")
    declare(client, "q", "", "dead").publish(b"m", routing_key="q", expiration="1000")
    rabbitmq.advance(1)
    rabbitmq.advance(100)  # It does not expire a second time.
    dead = take(client)
    assert dead.properties.expiration is None
    assert headers(dead)["x-death"][0]["original-expiration"] == "1000"


def test_message_dropped_by_x_max_length_is_dead_lettered_with_reason_maxlen(client: Client) -> None:
    dead_end(client)
    declare(client, "q", "dlx", x_max_length=1).fill("q", b"1", b"2")
    dead = take(client)
    assert (dead.body, deaths(dead)) == (b"1", [("q", "maxlen", 1)])


@pytest.mark.parametrize(
    "refuse",
    [m.BasicReject(delivery_tag=1), m.BasicNack(delivery_tag=1), m.BasicNack(multiple=True)],
    ids=["reject", "nack", "nack all"],
)
def test_refused_message_is_dead_lettered_with_reason_rejected(client: Client, refuse: m.Method) -> None:
    dead_end(client)
    declare(client, "q", "dlx").fill("q", b"m").get("q")
    client.send(refuse)
    assert deaths(take(client)) == [("q", "rejected", 1)]


def test_messages_rejected_by_multiple_nack_are_dead_lettered_in_order(client: Client) -> None:
    dead_end(client)
    declare(client, "q", "dlx").fill("q", b"1", b"2", b"3")
    for _ in range(3):
        client.get("q")
    assert client.nack(0, multiple=True, requeue=False).empty("dead") == [b"1", b"2", b"3"]


@pytest.mark.parametrize("method", [m.QueuePurge, m.QueueDelete], ids=lambda each: each.NAME)
def test_purge_and_delete_do_not_dead_letter_messages(client: Client, method: type[m.Method]) -> None:
    dead_end(client)
    declare(client, "q", "dlx").fill("q", b"m").send(method(queue="q")).take_frame()
    assert client.count("dead") == 0


def test_acknowledged_message_is_not_dead_lettered(client: Client) -> None:
    dead_end(client)
    declare(client, "q", "dlx").fill("q", b"m").get("q")
    assert client.ack(1).count("dead") == 0


# --- where it goes -----------------------------------------------------------------------------------
def test_rejected_message_without_dead_letter_exchange_is_dropped(client: Client) -> None:
    client.declare("q").fill("q", b"m")
    assert reject(client, "q").count("q") == 0


def test_rejected_message_with_missing_dead_letter_exchange_is_dropped(client: Client) -> None:
    declare(client, "q", "missing").fill("q", b"m")
    assert reject(client, "q").count("q") == 0
    client.expect_nothing()


def test_x_dead_letter_routing_key_replaces_the_routing_key(client: Client) -> None:
    dead_end(client)
    declare(client, "q", "dlx", "other").fill("q", b"m")
    reject(client, "q")
    dead = take(client)
    assert dead.method.routing_key == "other"
    assert headers(dead)["x-death"][0]["routing-keys"] == ["q"]


def test_dead_letter_without_own_routing_key_is_routed_by_all_cc_and_bcc_keys(client: Client) -> None:
    for queue in ("by key", "by copy", "by blind copy"):
        client.declare(queue).bind(queue, "amq.direct", queue.removeprefix("by "))
    declare(client, "q", "amq.direct").bind("q", "amq.topic", "#")
    table = {"CC": ["copy"], "BCC": ["blind copy"]}
    client.publish(exchange="amq.topic", routing_key="key", headers=table)
    reject(client, "q")
    dead = take(client, "by key")
    assert headers(dead)["x-death"][0]["routing-keys"] == ["key", "copy"]
    assert headers(dead)["CC"] == ["copy"]
    assert "BCC" not in headers(dead)
    assert client.count("by copy") == client.count("by blind copy") == 1


def test_x_dead_letter_routing_key_replaces_cc_keys(client: Client) -> None:
    client.declare("dead").declare("copy")
    declare(client, "q", "", "dead").publish(routing_key="q", headers={"CC": ["nowhere"]})
    client.bind("copy", "amq.direct", "nowhere")
    reject(client, "q")
    dead = take(client)
    assert headers(dead)["x-death"][0]["routing-keys"] == ["q", "nowhere"]
    assert client.count("copy") == 0


def test_cc_header_does_not_route_dead_letters_of_queues_with_own_routing_key(client: Client) -> None:
    client.declare("dead").declare("copy")
    declare(client, "second", "", "dead")
    declare(client, "q", "", "second")
    assert client.publish(routing_key="q", headers={"CC": ["copy"]}).empty("copy") != []
    reject(client, "q")
    assert reject(client, "second").count("copy") == 0
    assert [entry["routing-keys"] for entry in headers(take(client))["x-death"]] == [
        ["second"],
        ["q", "copy"],
    ]


def test_internal_exchange_accepts_dead_letters(client: Client) -> None:
    client.declare("dead").declare_exchange("inner", "fanout", internal=True).bind("dead", "inner")
    declare(client, "q", "inner").fill("q", b"m")
    assert reject(client, "q").count("dead") == 1


@pytest.mark.needs("virtual time")
def test_consumer_receives_dead_letter_when_the_message_expires(client: Client) -> None:
    dead_end(client)
    declare(client, "q", "dlx", x_message_ttl=1000).consume("dead").fill("q", b"m").expect_nothing()
    assert client.after(1).bodies() == [b"m"]


@pytest.mark.needs("virtual time")
def test_message_in_chain_of_ttl_queues_expires_after_the_ttl_of_each_queue(client: Client) -> None:
    start = int(client.server.clock.time())
    client.declare("end")
    declare(client, "third", "", "end", x_message_ttl=3000)
    declare(client, "second", "", "third", x_message_ttl=2000)
    declare(client, "first", "", "second", x_message_ttl=1000).fill("first", b"m")
    client.server.advance(60)
    dead = take(client, "end")
    entries = headers(dead)["x-death"]
    assert [(each["queue"], each["time"] - start) for each in entries] == [
        ("third", 6),
        ("second", 3),
        ("first", 1),
    ]


# --- more than one death -----------------------------------------------------------------------------
def test_latest_x_death_entry_is_first_and_its_count_increases(client: Client) -> None:
    declare(client, "a", "", "b")
    declare(client, "b", "", "a").fill("a", b"m")
    for queue in ("a", "b", "a", "b", "a"):
        reject(client, queue)
    dead = take(client, "b")
    assert deaths(dead) == [("a", "rejected", 3), ("b", "rejected", 2)]


@pytest.mark.needs("virtual time")
def test_x_death_counts_each_queue_and_reason_separately(rabbitmq: Server, client: Client) -> None:
    client.declare("dead")
    declare(client, "retry", "", "q", x_message_ttl=1000)
    declare(client, "q", "", "retry").fill("q", b"m")
    for _ in range(2):
        reject(client, "q")
        rabbitmq.advance(1)
    assert deaths(take(client, "q")) == [("retry", "expired", 2), ("q", "rejected", 2)]


@pytest.mark.needs("virtual time")
def test_first_and_last_death_headers_describe_different_deaths(rabbitmq: Server, client: Client) -> None:
    client.declare("dead").bind("dead", "amq.fanout")
    declare(client, "second", "amq.fanout", x_message_ttl=1000).bind("second", "amq.direct", "again")
    declare(client, "q", "amq.direct", "again").fill("q", b"m")
    reject(client, "q")
    rabbitmq.advance(1)
    dead = take(client)
    assert summary(dead, "first") == ("q", "rejected", "")
    assert summary(dead, "last") == ("second", "expired", "amq.direct")


@pytest.mark.needs("personality since rabbitmq-4.0")
def test_x_first_death_queue_is_unchanged_by_repeated_deaths(client: Client) -> None:
    declare(client, "a", "", "b")
    declare(client, "b", "", "a").fill("a", b"m")
    for queue in ("a", "b", "a"):
        reject(client, queue)
    dead = take(client, "b")
    assert summary(dead, "first")[0] == "a"
    assert summary(dead, "last")[0] == "a"


@pytest.mark.needs("personality since rabbitmq-4.0")
def test_x_death_headers_set_by_publisher_are_replaced(client: Client) -> None:
    dead_end(client)
    declare(client, "q", "dlx")
    invented = [{"count": 7, "reason": "rejected", "queue": "q", "exchange": "", "routing-keys": ["q"]}]
    table = {"x-death": invented, "x-first-death-queue": "elsewhere", "own": True}
    client.publish(routing_key="q", headers=table)
    reject(client, "q")
    dead = take(client)
    assert deaths(dead) == [("q", "rejected", 1)]
    assert summary(dead, "first")[0] == "q"
    assert headers(dead)["own"] is True


@pytest.mark.needs("personality since rabbitmq-4.0")
def test_dead_letter_republished_by_a_client_restarts_its_x_death_count(client: Client) -> None:
    dead_end(client)
    declare(client, "q", "dlx").fill("q", b"m")
    reject(client, "q").publish(b"m", routing_key="q", headers=headers(take(client)))
    reject(client, "q")
    assert deaths(take(client)) == [("q", "rejected", 1)]


# --- cycles ------------------------------------------------------------------------------------------
@pytest.mark.needs("virtual time")
def test_message_expiring_into_its_own_queue_is_dropped(client: Client) -> None:
    assert declare(client, "q", "", "q", x_message_ttl=1000).fill("q", b"m").after(1).count("q") == 0


@pytest.mark.needs("virtual time")
def test_message_expiring_through_a_cycle_of_two_queues_is_dropped(rabbitmq: Server, client: Client) -> None:
    declare(client, "a", "", "b", x_message_ttl=1000)
    declare(client, "b", "", "a", x_message_ttl=1000).fill("a", b"m")
    rabbitmq.advance(1)
    assert (client.count("a"), client.count("b")) == (0, 1)
    rabbitmq.advance(1)
    assert (client.count("a"), client.count("b")) == (0, 0)


@pytest.mark.needs("virtual time")
def test_dead_letter_cycle_with_a_rejection_is_not_dropped(rabbitmq: Server, client: Client) -> None:
    declare(client, "work", "", "wait")
    declare(client, "wait", "", "work", x_message_ttl=1000).fill("work", b"m")
    for _ in range(10):
        reject(client, "work")
        rabbitmq.advance(1)
    assert deaths(take(client, "work")) == [("wait", "expired", 10), ("work", "rejected", 10)]


@pytest.mark.needs("virtual time")
def test_rejection_before_an_expiry_cycle_does_not_prevent_the_drop(rabbitmq: Server, client: Client) -> None:
    declare(client, "outside", "", "a")
    declare(client, "a", "", "b", x_message_ttl=1000)
    declare(client, "b", "", "a", x_message_ttl=1000).fill("outside", b"m")
    reject(client, "outside")
    rabbitmq.advance(5)
    assert (client.count("a"), client.count("b")) == (0, 0)


@pytest.mark.needs("virtual time")
def test_dead_letter_cycle_is_dropped_only_for_the_queue_of_the_cycle(client: Client) -> None:
    client.declare("exit")
    declare(client, "q", "amq.fanout", x_message_ttl=1000)
    for queue in ("q", "exit"):
        client.bind(queue, "amq.fanout")
    client.publish(b"m", routing_key="q")
    client.server.advance(1)
    assert (client.count("q"), client.count("exit")) == (0, 1)
