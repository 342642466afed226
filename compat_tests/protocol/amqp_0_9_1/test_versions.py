"""What differs between the versions of RabbitMQ, outside queues and deprecated features.

Sources: release notes and behaviour of the versions that the personalities are called after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Content, Server
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission, TopicPermission, User
from fakeamqp.model.personality import PERSONALITIES
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.constants import PROTOCOL_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp

OLD = ("rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1")
SMALL_FRAMES = ("rabbitmq-3.13", "rabbitmq-4.0")
NEW = ("rabbitmq-4.2", "rabbitmq-4.3")
EVERY = (*OLD, *NEW)
REPLIES = "amq.rabbitmq.reply-to"


def greeting(name: str) -> m.ConnectionStart:
    return Server(name).connect().send_bytes(PROTOCOL_HEADER).expect(m.ConnectionStart, 0)


# --- identity ----------------------------------------------------------------------------------------
@rows(
    "name, version",
    ("rabbitmq-3.10", "3.10.8"),
    ("rabbitmq-3.13", "3.13.7"),
    ("rabbitmq-4.0", "4.0.5"),
    ("rabbitmq-4.1", "4.1.8"),
    ("rabbitmq-4.2", "4.2.9"),
    ("rabbitmq-4.3", "4.3.6"),
)
def test_product_and_version_are_announced(name: str, version: str) -> None:
    properties = greeting(name).server_properties
    assert (properties["product"], properties["version"]) == ("RabbitMQ", version)


@rows(
    "name, mechanisms",
    ("rabbitmq-3.10", b"PLAIN AMQPLAIN"),
    ("rabbitmq-3.13", b"PLAIN AMQPLAIN"),
    ("rabbitmq-4.0", b"AMQPLAIN ANONYMOUS PLAIN"),
    ("rabbitmq-4.2", b"PLAIN AMQPLAIN ANONYMOUS"),
    ("rabbitmq-4.3", b"AMQPLAIN PLAIN ANONYMOUS"),
)
def test_mechanisms_are_offered_in_rabbitmqs_order(name: str, mechanisms: bytes) -> None:
    assert greeting(name).mechanisms == mechanisms


@pytest.mark.parametrize("name", EVERY)
def test_all_versions_offer_the_same_channel_max_frame_max_and_heartbeat(name: str) -> None:
    client = Server(name).connect()
    client.send_bytes(PROTOCOL_HEADER).expect(m.ConnectionStart, 0)
    tune = client.login().expect(m.ConnectionTune, 0)
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2047, 131072, 60)


# --- frames ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "least"), [(name, 4096 if name in SMALL_FRAMES else 8192) for name in EVERY]
)
def test_smallest_frame_max_is_4096_up_to_4_0_and_8192_since_4_1(name: str, least: int) -> None:
    server = Server(name)
    server.client(frame_max=least).declare("q", durable=True)
    client = server.connect()
    client.send_bytes(PROTOCOL_HEADER).expect(m.ConnectionStart, 0)
    client.login().expect(m.ConnectionTune, 0)
    client.send(m.ConnectionTuneOk(channel_max=1, frame_max=least - 1), 0).expect_silent_end()


def overrun(name: str) -> Client:
    """A client that has sent three bytes of body, having announced two."""
    client = Server(name).client().declare("q", durable=True)
    client.send(m.BasicPublish(routing_key="q"))
    client.send_frame(2, 1, bytes((0, 60, 0, 0)) + (2).to_bytes(8, "big") + b"\0\0")
    return client.send_frame(3, 1, b"one")


@pytest.mark.parametrize("name", OLD)
def test_body_larger_than_announced_closes_connection_at_next_method_up_to_4_1(name: str) -> None:
    client = overrun(name)
    client.send_frame(3, 1, b"more").expect_nothing()
    close = client.ends(m.BasicQos(), 505)
    assert close.reply_text == (
        "UNEXPECTED_FRAME - expected content body, got non content body frame instead"
    )
    assert (close.class_id, close.method_id) == (60, 40)


@pytest.mark.parametrize("name", NEW)
def test_body_larger_than_announced_closes_connection_with_501_since_4_2(name: str) -> None:
    overrun(name).expect_connection_close(501)


@pytest.mark.parametrize("name", EVERY)
def test_content_of_more_than_512_mib_is_refused_at_its_header_since_4_2(name: str) -> None:
    client = Server(name).client().send(m.BasicPublish(routing_key="q"))
    client.send_frame(2, 1, bytes((0, 60, 0, 0)) + (2**29 + 1).to_bytes(8, "big") + b"\0\0")
    if name in OLD:
        client.expect_nothing()
    else:
        client.expect_connection_close(501)


@pytest.mark.parametrize("name", EVERY)
def test_largest_message_is_128_mib_in_3_13_and_16_mib_since_4_0(name: str) -> None:
    """16 MiB since 4.0, 128 MiB before that; the records say so to the byte."""
    mib = 128 if name == "rabbitmq-3.13" else 16
    assert PERSONALITIES[name].largest_message == mib * 1024 * 1024
    if mib == 16:
        client = Server(name).client()
        client.publish(bytes(mib * 1024 * 1024 + 1), routing_key="q").expect_channel_close(406)


# --- permissions and the order of checks -------------------------------------------------------------
def someone(server: Server, *, topics: dict[Any, Any] | None = None, **permissions: str) -> Client:
    """A client of the user `someone`."""
    permission = Permission(**{"configure": "", "write": "", "read": "", **permissions})
    user = User("someone", "secret", (), {"/": permission}, topics or {})
    server.state.access.add(user)
    return server.client(user="someone", password="secret")


@pytest.mark.needs("settings")
@pytest.mark.parametrize("name", EVERY)
def test_passive_declare_needs_a_permission_since_4_2(name: str) -> None:
    server = Server(name)
    server.client().declare("q", durable=True)
    client = someone(server).send(m.QueueDeclare(queue="q", passive=True))
    if name in OLD:
        client.expect(m.QueueDeclareOk)
    else:
        client.expect_channel_close(403)


def stranger(name: str) -> Client:
    """A client that may publish to the topic exchange amq.topic by keys that begin with `mine`."""
    topics = {("/", "amq.topic"): TopicPermission(write="^mine", read="^mine")}
    return someone(Server(name), topics=topics, write=".*")


@pytest.mark.needs("settings")
@pytest.mark.parametrize("name", EVERY)
def test_expiration_is_validated_before_user_id_since_4_0(name: str) -> None:
    client = stranger(name).publish(exchange="amq.direct", expiration="soon", user_id="guest")
    text = client.expect_channel_close(406).reply_text
    assert ("user_id" in text) is (name == "rabbitmq-3.13")
    assert ("expiration" in text) is (name != "rabbitmq-3.13")


@pytest.mark.needs("settings")
@pytest.mark.parametrize("name", EVERY)
def test_topic_permission_is_checked_after_expiration_since_4_0(name: str) -> None:
    client = stranger(name).publish(exchange="amq.topic", routing_key="yours", expiration="soon")
    client.expect_channel_close(403 if name == "rabbitmq-3.13" else 406)


@pytest.mark.needs("settings")
@pytest.mark.parametrize("name", EVERY)
def test_topic_permission_is_checked_for_keys_in_cc_since_4_0(name: str) -> None:
    client = stranger(name).publish(exchange="amq.topic", routing_key="mine", headers={"CC": ["yours"]})
    if name == "rabbitmq-3.13":
        client.expect_nothing()
    else:
        client.expect_channel_close(403)


@pytest.mark.needs("settings")
@pytest.mark.parametrize("name", EVERY)
def test_topic_permission_is_always_checked_for_the_routing_key(name: str) -> None:
    """With properties that mean something to the broker, and without."""
    for properties in ({}, {"expiration": "5"}, {"headers": {"CC": ["mine"]}}):
        client = stranger(name)
        client.publish(exchange="amq.topic", routing_key="mine", expiration="5").expect_nothing()
        client.publish(exchange="amq.topic", routing_key="yours", **properties).expect_channel_close(403)


# --- direct replies ----------------------------------------------------------------------------------
def asker(server: Server) -> tuple[Client, str]:
    """A client that awaits direct replies, and the address for them."""
    client = server.client().declare("questions", durable=True)
    client.consume(REPLIES, "rt", no_ack=True).publish(routing_key="questions", reply_to=REPLIES)
    question = client.get("questions", no_ack=True)
    assert question is not None and question.properties.reply_to is not None
    return client, question.properties.reply_to


@pytest.mark.parametrize("name", EVERY)
def test_direct_replies_have_consecutive_delivery_tags_since_4_2(name: str) -> None:
    server = Server(name)
    client, address = asker(server)
    for _ in range(3):
        server.client().publish(routing_key=address)
    tags = [client.delivery().method.delivery_tag for _ in range(3)]
    assert tags == ([2, 2, 2] if name in OLD else [2, 3, 4])
    got = client.fill("questions", b"next").fetch("questions")
    assert got.method.delivery_tag == (2 if name in OLD else 5)
    client.ack(got.method.delivery_tag).expect_nothing()


@pytest.mark.parametrize("mode", [None, m.ConfirmSelect(), m.TxSelect()], ids=["plain", "confirm", "tx"])
@pytest.mark.parametrize("name", EVERY)
def test_a_mandatory_direct_reply_is_not_returned_since_4_2(name: str, mode: Any) -> None:
    server = Server(name)
    client, address = asker(server)
    answerer = server.client()
    if mode is not None:
        answerer.call(mode, m.ConfirmSelectOk if isinstance(mode, m.ConfirmSelect) else m.TxSelectOk)
    answerer.publish(b"!", routing_key=address, mandatory=True)
    if isinstance(mode, m.TxSelect):
        answerer.send(m.TxCommit())
    if name in OLD:
        returned = answerer.expect_content(m.BasicReturn)
        assert (returned.method.reply_code, returned.body) == (312, b"!")
    if mode is not None:
        answerer.expect(m.BasicAck if isinstance(mode, m.ConfirmSelect) else m.TxCommitOk)
    answerer.expect_nothing()
    assert client.delivery().body == b"!"


@pytest.mark.parametrize("name", EVERY)
def test_binding_of_direct_reply_address_is_refused(name: str) -> None:
    client, address = asker(Server(name))
    client.fails(
        m.QueueBind(queue=address, exchange="amq.direct"),
        404 if name in OLD else 403,
        text=f"NOT_FOUND - no queue '{address}' in vhost '/'"
        if name in OLD
        else "ACCESS_REFUSED - cannot bind or unbind to a volatile (direct reply-to) queue",
    )


# --- routing -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", EVERY)
def test_topic_binding_with_more_than_two_hash_wildcards_is_refused_since_4_3(name: str) -> None:
    client = Server(name).client().declare("q", durable=True)
    client.bind("q", "amq.topic", "a.#.#").bind("q", "amq.topic", "a.b#.c#.d#.#")
    client.send(m.QueueBind(queue="q", exchange="amq.topic", routing_key="a.#.#.#"))
    if name != "rabbitmq-4.3":
        client.expect(m.QueueBindOk)
        return
    client.expect_channel_close(
        406,
        text="PRECONDITION_FAILED - Topic binding key 'a.#.#.#' uses 3 '#' wildcards, at most 2 are allowed",
        at=(50, 20),
    )
    client.open_channel()
    client.perform(
        m.QueueUnbind(queue="q", exchange="amq.topic", routing_key="a.#.#.#")
    )  # Nothing is bound by it.
    client.send(m.ExchangeBind(destination="amq.fanout", source="amq.topic", routing_key="#.#.#"))
    client.expect_channel_close(406, at=(40, 30))


@pytest.mark.parametrize("name", [*EVERY, "spec"])
def test_headers_exchange_of_rabbitmq_matches_timestamps_of_messages_in_milliseconds(name: str) -> None:
    """In RabbitMQ, that is; those of bindings they take as they are."""
    client = Server(name).client().declare("q", durable=True)
    wanted = Timestamp(5) if name == "spec" else 5000
    client.bind("q", "amq.headers", arguments={"x-match": "all", "at": wanted})
    client.publish(b"5 s", exchange="amq.headers", headers={"at": Timestamp(5)})
    client.publish(b"5000 s", exchange="amq.headers", headers={"at": Timestamp(5000)})
    client.publish(b"number", exchange="amq.headers", headers={"at": wanted})
    assert client.empty("q") == [b"5 s", b"number"]


# --- deaths that a client tells of -------------------------------------------------------------------
def history(queue: str, reason: str = "rejected", **changes: Any) -> dict[str, Any]:
    """An entry of x-death as a client sends it on; None leaves a field out."""
    entry = {
        "routing-keys": ["k"],
        "exchange": "e",
        "queue": queue,
        "reason": reason,
        "count": 3,
        "time": Timestamp(1_600_000_000),
        **changes,
    }
    return {name: value for name, value in entry.items() if value is not None}


def retrier(name: str) -> Client:
    """A client with a queue `work` that dead-letters to `dead`."""
    client = Server(name).client().declare("dead", durable=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    return client.declare("work", durable=True, arguments=arguments)


def die(client: Client, *entries: Any, **headers: Any) -> dict[str, Any]:
    """Publish a message with this x-death, reject it, and return its headers as they are then."""
    got = client.publish(routing_key="work", headers={**headers, "x-death": list(entries)}).fetch("work")
    client.reject(got.method.delivery_tag)
    return headers_of(client.get("dead", no_ack=True))


def headers_of(content: Content | None) -> dict[str, Any]:
    assert content is not None and content.properties.headers is not None
    return content.properties.headers


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", EVERY)
def test_x_death_count_of_publisher_is_continued_only_in_3_13(name: str) -> None:
    client = retrier(name)
    [death] = die(client, history("work"))["x-death"]
    if name == "rabbitmq-3.13":
        assert (death["count"], death["exchange"], death["time"]) == (4, "e", 1_600_000_000)
        assert death["routing-keys"] == ["k"]
    else:
        now = client.server.clock.time()
        assert (death["count"], death["exchange"], death["time"]) == (1, "", now)


@pytest.mark.parametrize("name", EVERY)
def test_x_death_entries_of_publisher_are_kept_only_in_3_13(name: str) -> None:
    deaths = die(retrier(name), history("a", "expired"), history("b", "maxlen"))["x-death"]
    expected = [("work", 1), ("a", 3), ("b", 3)] if name == "rabbitmq-3.13" else [("work", 1)]
    assert [(death["queue"], death["count"]) for death in deaths] == expected


@pytest.mark.parametrize("name", EVERY)
def test_x_first_death_queue_of_publisher_is_kept_only_in_3_13(name: str) -> None:
    headers = die(retrier(name), history("a"), **{"x-first-death-queue": "a"})
    old = name == "rabbitmq-3.13"
    assert headers["x-first-death-queue"] == ("a" if old else "work")
    assert ("x-first-death-reason" in headers) is not old
    assert (headers["x-last-death-queue"], headers["x-last-death-reason"]) == ("work", "rejected")


@pytest.mark.parametrize("name", EVERY)
def test_x_death_of_publisher_is_rewritten_only_in_3_13(name: str) -> None:
    client = retrier(name)
    sent = [history("a", time=5, colour="red", **{"original-expiration": "7"}), history("b", count=None), 5]
    client.publish(routing_key="work", headers={"x-death": sent, "other": 1})
    headers = headers_of(client.get("work", no_ack=True))
    assert headers["other"] == 1
    if name != "rabbitmq-3.13":
        assert headers["x-death"] == sent
        return
    [death] = headers["x-death"]
    order = ["original-expiration", "count", "reason", "queue", "time", "exchange", "routing-keys"]
    assert list(death) == order
    assert (death["original-expiration"], death["time"]) == ("7", Timestamp(5))


@pytest.mark.needs("personality rabbitmq-3.13")
@pytest.mark.parametrize("missing", ["exchange", "queue", "reason", "count", "time", "routing-keys"])
def test_x_death_entry_with_missing_field_is_dropped_in_3_13(missing: str) -> None:
    client = retrier("rabbitmq-3.13")
    entry = {name: value for name, value in history("a").items() if name != missing}
    client.publish(routing_key="work", headers={"x-death": [entry]})
    assert headers_of(client.get("work", no_ack=True)) == {"x-death": []}
    headers = die(client, entry)
    assert [death["queue"] for death in headers["x-death"]] == ["work"]
    assert "x-first-death-queue" not in headers


@pytest.mark.needs("personality rabbitmq-3.13")
@pytest.mark.parametrize("value", ["text", 5, {"queue": "a"}])
def test_x_death_of_type_other_than_array_is_ignored(value: Any) -> None:
    client = retrier("rabbitmq-3.13")
    got = client.publish(routing_key="work", headers={"x-death": value}).get("work")
    assert headers_of(got)["x-death"] == value
    assert got is not None
    client.reject(got.method.delivery_tag)
    headers = headers_of(client.get("dead", no_ack=True))
    assert [death["queue"] for death in headers["x-death"]] == ["work"]
    assert headers["x-first-death-queue"] == "work"


@pytest.mark.needs("personality rabbitmq-3.13")
@pytest.mark.parametrize("time", [-1, 2**62, Timestamp(2**63)])
def test_x_death_entry_with_invalid_time_is_dropped_in_3_13(time: int) -> None:
    client = retrier("rabbitmq-3.13")
    client.publish(routing_key="work", headers={"x-death": [history("a", time=time)]})
    assert headers_of(client.get("work", no_ack=True)) == {"x-death": []}


@pytest.mark.needs("personality rabbitmq-3.13")
def test_x_death_entry_with_unknown_reason_closes_connection_with_541_in_3_13() -> None:
    client = retrier("rabbitmq-3.13")
    client.publish(routing_key="work", headers={"x-death": [history("a", "boredom")]})
    assert client.expect_connection_close(541).reply_text == "INTERNAL_ERROR"


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", EVERY)
def test_x_death_of_publisher_counts_for_cycle_detection_only_in_3_13(name: str) -> None:
    """It would expire back into the queue where it is said to have expired before."""
    client = Server(name).client()
    client.declare("end", durable=True, arguments={"x-message-ttl": 10, "x-dead-letter-exchange": ""})
    client.declare(
        "work",
        durable=True,
        arguments={"x-message-ttl": 10, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "end"},
    )
    client.publish(routing_key="work", headers={"x-death": [history("end", "expired")]})
    assert client.after(0.01).count("end") == (0 if name == "rabbitmq-3.13" else 1)


# --- consumers ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [*EVERY, "spec"])
def test_cancel_ok_of_client_without_cancel_ends_consumer_only_in_4_3(name: str) -> None:
    client = Server(name).client().declare("q", durable=True)
    client.consume("q", "tag").send(m.BasicCancelOk(consumer_tag="tag"))
    if name != "rabbitmq-4.3":
        client.expect_connection_close(503, text="COMMAND_INVALID - unimplemented method", at=(60, 31))
        return
    client.expect_nothing()
    assert client.declare_ok("q", passive=True).consumer_count == 0
    close = client.ends(m.BasicCancelOk(consumer_tag="tag"), 541)
    assert (close.reply_text, close.class_id, close.method_id) == ("INTERNAL_ERROR", 0, 0)


# --- arguments of queues -----------------------------------------------------------------------------
def declared(name: str, **arguments: Any) -> str:
    """What becomes of a durable queue with these arguments (hyphens for underscores): the text, or ok."""
    table = {f"x-{argument.replace('_', '-')}": value for argument, value in arguments.items()}
    client = Server(name).client().send(m.QueueDeclare(queue="q", durable=True, arguments=table))
    if isinstance(client.inbox[0].method, m.QueueDeclareOk):
        return "ok"
    return client.expect_channel_close(406).reply_text


def belongs_elsewhere(argument: str, kind: str) -> str:
    return (
        f"PRECONDITION_FAILED - invalid arg '{argument}' for queue 'q' in vhost '/' "
        f"of queue type rabbit_{kind}_queue"
    )


@pytest.mark.parametrize("name", [each for each in EVERY if each != "rabbitmq-4.3"])
def test_x_queue_mode_other_than_default_or_lazy_is_refused_up_to_4_2(name: str) -> None:
    assert declared(name, queue_mode="lazy") == "ok"
    assert declared(name, queue_mode="eager") != "ok"
    assert declared(name, queue_mode=5) != "ok"


@pytest.mark.needs("personality rabbitmq-4.3")
@pytest.mark.parametrize("mode", ["default", "lazy", "eager", 5])
def test_x_queue_mode_of_any_value_is_accepted_in_4_3(mode: Any) -> None:
    assert declared("rabbitmq-4.3", queue_mode=mode) == "ok"  # Measured on 4.3.6.


@pytest.mark.needs("personality of choices")
@pytest.mark.parametrize("mode", ["default", "lazy", "eager", 5])
def test_removed_queue_argument_closes_connection_with_541(mode: Any) -> None:
    client = Server(
        replace(PERSONALITIES["rabbitmq-4.3"], removed_queue_arguments=("x-queue-mode",))
    ).client()
    client.ends(
        m.QueueDeclare(queue="q", durable=True, arguments={"x-queue-mode": mode}),
        541,
        text="INTERNAL_ERROR - invalid arg 'x-queue-mode' for queue 'q' in vhost '/'",
    )


@pytest.mark.needs("personality rabbitmq-4.3")
def test_x_queue_mode_is_compared_in_redeclare_in_4_3() -> None:
    client = Server("rabbitmq-4.3").client().declare("q", durable=True, arguments={"x-queue-mode": "eager"})
    client.send(m.QueueDeclare(queue="q", durable=True, arguments={"x-queue-mode": "lazy"}))
    assert "inequivalent arg 'x-queue-mode'" in client.expect_channel_close(406).reply_text


@pytest.mark.parametrize("name", EVERY)
def test_x_queue_version_1_is_refused_since_4_3(name: str) -> None:
    assert declared(name, queue_version=2) == "ok"
    refusal = (
        "PRECONDITION_FAILED - invalid arg 'x-queue-version' for queue 'q' in vhost '/': "
        "\"unsupported queue version '{}'\""
    )
    assert declared(name, queue_version=1) == ("ok" if name != "rabbitmq-4.3" else refusal.format(1))
    assert declared(name, queue_version=3) == refusal.format(3)


@pytest.mark.parametrize("name", EVERY)
def test_x_queue_leader_locator_of_classic_queue_is_accepted_since_4_0(name: str) -> None:
    old = name == "rabbitmq-3.13"
    expected = belongs_elsewhere("x-queue-leader-locator", "classic") if old else "ok"
    assert declared(name, queue_leader_locator="balanced") == expected


@pytest.mark.parametrize("name", EVERY)
def test_x_stream_filter_size_bytes_of_classic_queue_is_refused_since_4_2(name: str) -> None:
    expected = "ok" if name in OLD else belongs_elsewhere("x-stream-filter-size-bytes", "classic")
    assert declared(name, stream_filter_size_bytes=16) == expected


@pytest.mark.parametrize(
    "argument",
    ["delayed-retry-type", "delayed-retry-min", "delayed-retry-max", "consumer-disconnected-timeout"],
)
@pytest.mark.parametrize("name", EVERY)
def test_quorum_queue_arguments_are_refused_for_classic_queue_since_4_3(name: str, argument: str) -> None:
    refused = belongs_elsewhere(f"x-{argument}", "classic")
    assert declared(name, **{argument: 5}) == (refused if name == "rabbitmq-4.3" else "ok")


@pytest.mark.parametrize("name", EVERY)
def test_x_consumer_timeout_of_classic_queue_is_refused_since_4_3(name: str) -> None:
    refused = belongs_elsewhere("x-consumer-timeout", "classic")
    assert declared(name, consumer_timeout="x") == (refused if name == "rabbitmq-4.3" else "ok")


@pytest.mark.parametrize("name", EVERY)
def test_empty_x_queue_type_is_accepted_since_4_2(name: str) -> None:
    assert (declared(name, queue_type="") == "ok") is (name in NEW)
    assert declared(name, queue_type="undefined") == "ok"
    assert declared(name, queue_type="quick") == (
        "PRECONDITION_FAILED - invalid arg 'x-queue-type' for queue 'q' in vhost '/': "
        "\"unsupported queue type 'quick'\""
    )


@pytest.mark.parametrize("name", EVERY)
def test_x_cancel_on_ha_failover_is_not_validated_since_4_0(name: str) -> None:
    client = Server(name).client().declare("q", durable=True)
    client.consume("q", arguments={"x-cancel-on-ha-failover": True, "x-credit": {"credit": 1}})
    client.send(m.BasicConsume(queue="q", arguments={"x-cancel-on-ha-failover": "yes"}))
    if name == "rabbitmq-3.13":
        client.expect_channel_close(406)
    else:
        client.expect(m.BasicConsumeOk)


@pytest.mark.parametrize("name", EVERY)
def test_x_stream_filter_of_classic_queue_consumer_is_refused_since_4_0(name: str) -> None:
    client = Server(name).client().declare("q", durable=True)
    client.send(m.BasicConsume(queue="q", arguments={"x-stream-filter": 5}))
    if name == "rabbitmq-3.13":
        client.expect(m.BasicConsumeOk)
    else:
        text = client.expect_channel_close(406).reply_text
        assert text == belongs_elsewhere("x-stream-filter", "classic")


# --- permissions that change -------------------------------------------------------------------------
def renew(client: Client) -> Client:
    return client.send(m.ConnectionUpdateSecret(new_secret=b"new", reason="rotation"), 0)


@pytest.mark.needs("inspection", "settings")
@pytest.mark.parametrize("name", EVERY)
def test_update_secret_cancels_consumers_without_read_permission_since_4_2(name: str) -> None:
    server = Server(name)
    for queue in ("kept", "lost"):
        server.client().declare(queue, durable=True)
    client = someone(server, read=".*", write=".*").consume("kept")
    client.consume("lost", "gone").consume(REPLIES, no_ack=True)
    server.state.access.add(User("someone", "secret", (), {"/": Permission("", "", "kept")}))
    renew(client).expect(m.ConnectionUpdateSecretOk, 0)
    left = [len(server.vhost.queues[queue].subscriptions) for queue in ("kept", "lost")]
    assert left == ([1, 1] if name in OLD else [1, 0])


@pytest.mark.needs("settings")
def test_consumer_cancelled_by_update_secret_gets_basic_cancel() -> None:
    server = Server("rabbitmq-4.3")
    server.client().declare("q", durable=True)
    server.state.access.add(User("someone", "secret", (), {"/": Permission()}))
    client = server.client(
        user="someone",
        password="secret",
        client_properties={"capabilities": {"consumer_cancel_notify": True}},
    )
    client.consume("q", "gone")
    server.state.access.add(User("someone", "secret", (), {"/": Permission("", "", "")}))
    assert renew(client).expect(m.BasicCancel).consumer_tag == "gone"
    client.expect(m.ConnectionUpdateSecretOk, 0)


@pytest.mark.needs("settings")
@pytest.mark.parametrize("name", EVERY)
def test_update_secret_closes_connection_without_access_to_virtual_host_since_4_2(name: str) -> None:
    server = Server(name)
    client = someone(server)
    server.state.access.add(User("someone", "secret", (), {}))
    renew(client)
    if name in OLD:
        client.expect(m.ConnectionUpdateSecretOk, 0)
    else:
        assert client.expect_connection_close(530).reply_text == (
            "NOT_ALLOWED - access to vhost '/' refused for user 'someone'"
        )


# --- properties --------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(("sent", "expiration"), [("5", "5"), ("+5", "5"), ("007", "7"), ("-0", "0")])
def test_expiration_is_normalized_in_returned_message(name: str, sent: str, expiration: str) -> None:
    client = Server(name).client().publish(exchange="amq.fanout", mandatory=True, expiration=sent, type="t")
    returned = client.expect_content(m.BasicReturn)
    assert (returned.properties.expiration, returned.properties.type) == (expiration, "t")


# --- between 4.0 and 4.3 --------------------------------------------------------------------------------
@pytest.mark.needs("own broker")
def test_personalities_4_1_and_4_2_keep_choices_equal_in_their_neighbours() -> None:
    """4.0.5 and 4.3.6 are measured, 4.1 and 4.2 are not: what differs from both needs a source of its own."""
    assert (
        _alone(PERSONALITIES["rabbitmq-4.0"], PERSONALITIES["rabbitmq-4.2"], PERSONALITIES["rabbitmq-4.3"])
        == []
    )
    assert (
        _alone(PERSONALITIES["rabbitmq-4.0"], PERSONALITIES["rabbitmq-4.1"], PERSONALITIES["rabbitmq-4.2"])
        == []
    )


@pytest.mark.needs("own broker")
def test_personality_4_1_differs_from_4_0_only_in_known_choices() -> None:
    """Sources: the tags v4.0.5, v4.1.8 and v4.2.9 of rabbitmq-server, choice by choice."""
    assert [
        each.name for each in PERSONALITIES["rabbitmq-4.0"].differences(PERSONALITIES["rabbitmq-4.1"])
    ] == [
        "name",
        "smallest_frame_max",
        "deprecated_features.amqp_filter_set_bug",
        "quorum.returns_activate",
        "names_default_queue_type",
        "definitions_repeat_queue_type",
    ]


def _alone(before: Any, between: Any, after: Any, place: str = "") -> list[str]:
    """The choices in which the record between two others differs from both, where these are equal."""
    found = []
    for each in fields(between):
        values = [getattr(record, each.name) for record in (before, between, after)]
        name = place + each.name
        if name in ("name", "version"):
            continue
        if is_dataclass(values[0]):
            found += _alone(*values, f"{name}.")
        elif isinstance(values[0], Mapping):
            keys = dict.fromkeys(key for value in values for key in value)
            found += [f"{name}[{key}]" for key in keys if _is_alone([value.get(key) for value in values])]
        elif _is_alone(values):
            found.append(name)
    return found


def _is_alone(values: Sequence[Any]) -> bool:
    before, between, after = values
    return bool(before == after != between)
