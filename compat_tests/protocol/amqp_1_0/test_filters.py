"""Filters of AMQP 1.0 on streams: by properties, by application properties, and by SQL expressions."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.amqp_1_0.compare import on_fake
from compat_tests.differential.amqp_1_0.recorded import SCENARIOS, transcript
from compat_tests.differential.amqp_1_0.scenarios.property_filters import APPLICATION, PROPERTIES
from compat_tests.differential.amqp_1_0.scenarios.sql_filters import sql
from compat_tests.differential.amqp_1_0.scenarios.tables import described
from compat_tests.scripted.amqp_1_0 import RECEIVER, Client, Link, Server, attach, filters, message
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, UInt, ULong

FIRST = filters(offset_spec="first")
PROPERTY_FILTERS, SQL_FILTERS = "AMQP_FILTEX_PROP_V1_0", "AMQP_FILTEX_SQL_V1_0"


def with_stream(server: Server) -> Server:
    server.vhost.queues.declare("s", QueueDeclaration(durable=True, arguments={"x-queue-type": "stream"}))
    return server


@pytest.fixture
def streams() -> Server:
    """A broker like RabbitMQ 4.3, with stream "s"."""
    return with_stream(Server("rabbitmq-4.3"))


def numbered(server: Server, *numbers: int) -> Link:
    """A publisher to the stream that has sent messages with these numbers as property n."""
    sender = server.session().sender("/queues/s")
    for number in numbers:
        sender.transfer(message(str(number).encode(), application={"n": number}))
    sender.client.take_all()
    return sender


def reader(client: Client, wanted: dict[Any, Any], credit: int = 10, **fields: Any) -> Link:
    return client.receiver("/queues/s", credit=credit, terminus={"filter": {**FIRST, **wanted}}, **fields)


def passed(client: Client) -> list[bytes]:
    """The bodies of the messages that have come."""
    found = [each for each in client.take_all() if isinstance(each.what, c.Transfer)]
    return [each.payload.split(b"\x53\x75\xa0")[1][1:] for each in found]


@pytest.mark.rule("1-0/filter/properties", "1-0/filter/sql", "1-0/filter/limits", "1-0/attach/filter")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_filter_delivers_the_messages_that_rabbitmq_delivered(scenario: str) -> None:
    assert on_fake(scenario, "rabbitmq-4.3") == transcript(scenario)


@pytest.mark.rule("1-0/attach/offered-capabilities")
@pytest.mark.parametrize(
    ("version", "of_source", "of_target"),
    [
        ("rabbitmq-4.0", None, None),
        ("rabbitmq-4.1", (PROPERTY_FILTERS,), None),
        ("rabbitmq-4.2", (PROPERTY_FILTERS, SQL_FILTERS), None),
        ("rabbitmq-4.3", (PROPERTY_FILTERS, SQL_FILTERS), (PROPERTY_FILTERS, SQL_FILTERS)),
    ],
)
def test_links_with_streams_offer_the_filters_of_the_version(
    version: str, of_source: Any, of_target: Any
) -> None:
    client = with_stream(Server(version)).session()
    assert client.sender("/queues/s", 0).attached.offered_capabilities == of_target
    assert client.receiver("/queues/s", 1).attached.offered_capabilities == of_source


@pytest.mark.rule("1-0/filter/properties", "1-0/filter/sql")
@pytest.mark.parametrize(
    ("version", "by_property", "by_sql"),
    [
        ("rabbitmq-4.0", [b"1", b"2"], [b"1", b"2"]),
        ("rabbitmq-4.1", [b"2"], [b"1", b"2"]),
        ("rabbitmq-4.2", [b"2"], [b"2"]),
    ],
)
def test_version_without_a_filter_delivers_all(
    version: str, by_property: list[bytes], by_sql: list[bytes]
) -> None:
    server = with_stream(Server(version))
    numbered(server, 1, 2)
    for wanted, expected in ((described(APPLICATION, {"n": 2}), by_property), (sql("n = 2"), by_sql)):
        client = server.session()
        reader(client, wanted, snd_settle_mode=1)
        assert passed(client) == expected


@pytest.mark.rule("1-0/attach/filter")
def test_filter_of_a_quorum_queue_is_in_force_and_filters_nothing(rabbitmq: Server) -> None:
    declaration = QueueDeclaration(durable=True, arguments={"x-queue-type": "quorum"})
    rabbitmq.vhost.queues.declare("quorum", declaration)
    client = rabbitmq.session()
    client.sender("/queues/quorum").publish()
    wanted = {**FIRST, **sql("n = 1")}
    receiver = client.receiver("/queues/quorum", 1, credit=1, terminus={"filter": wanted})
    assert c.read_composite(receiver.attached.source).filter == wanted
    assert receiver.take()[1]["data"] == b"body"


@pytest.mark.rule("1-0/attach/filter")
@pytest.mark.parametrize("name", [ULong(1), b"x", None, True, "x"], ids=repr)
def test_filter_whose_name_is_no_symbol_has_no_effect_in_rabbitmq_4_0(name: Any) -> None:
    client = with_stream(Server("rabbitmq-4.0")).session()
    attached = client.receiver("/queues/s", terminus={"filter": {name: "first"}}).attached
    assert c.read_composite(attached.source).filter == {name: "first"}


@pytest.mark.rule("1-0/attach/filter")
def test_undescribed_filter_is_described_in_the_answer_where_it_is_permitted() -> None:
    client = with_stream(Server("rabbitmq-4.2")).session()
    bare = {Symbol("rabbitmq:stream-offset-spec"): "first"}
    attached = client.receiver("/queues/s", terminus={"filter": bare}).attached
    assert c.read_composite(attached.source).filter == FIRST


@pytest.mark.rule("1-0/filter/sql")
def test_messages_that_do_not_pass_cost_no_credit(streams: Server) -> None:
    client = streams.session()
    link = reader(client, sql("n > 1"), credit=2)
    numbered(streams, 1, 2, 1, 3, 4)
    assert passed(client) == [b"2", b"3"]
    link.flow(delivery_count=2, link_credit=5, drain=True)
    assert [type(each.what) for each in client.inbox] == [c.Transfer, c.Flow]
    told = client.take_all()[1].what
    assert (told.delivery_count, told.link_credit, told.available) == (7, 0, 0)


@pytest.mark.rule("1-0/filter/sql", "1-0/filter/properties")
def test_message_of_0_9_1_is_filtered_by_what_it_is_in_1_0(streams: Server) -> None:
    properties: dict[str, Any] = {
        "app_id": "orders",
        "headers": {"n": 2, "x-n": 3},
        "timestamp": 5,
        "reply_to": "a b",
    }
    streams.client().publish(b"old", routing_key="s", **properties)
    client = streams.session()
    wanted = "n = 2 AND p.group_id = 'orders' AND p.creation_time = 5000 AND p.reply_to = '/queues/a%20b'"
    reader(client, sql(wanted))
    assert len(passed(client)) == 1
    client = streams.session()
    reader(client, described(PROPERTIES, {Symbol("group-id"): "&p:ord"}))
    assert len(passed(client)) == 1
    client = streams.session()
    reader(client, sql("[x-n] = 3"))
    assert not passed(client)


@pytest.mark.rule("1-0/filter/sql")
def test_utc_is_the_time_of_the_brokers_clock(streams: Server) -> None:
    now = int(streams.state.clock.time() * 1000)
    client = streams.session()
    reader(client, sql(f"UTC() = {now} + 20000"))
    sender = numbered(streams, 1)
    assert not passed(client)
    streams.advance(20)
    sender.publish(message(b"2"))
    assert passed(client) == [b"2"]


@pytest.mark.rule("1-0/filter/sql")
def test_number_beyond_the_floats_ends_the_session_of_the_reader_only(streams: Server) -> None:
    client = streams.session()
    reader(client, sql("n * 1.0E300 * 1.0E300 > 0"))
    sender = numbered(streams, 0)
    assert not client.inbox
    assert isinstance(sender.publish(message(b"1", application={"n": 10**9})), c.Accepted)
    client.expect_end("amqp:internal-error")
    assert not streams.vhost.queues["s"].subscriptions
    client = streams.session()
    client.send(attach(RECEIVER, "/queues/s", terminus={"filter": sql("n = 1.0E999")}))
    client.expect_end("amqp:internal-error")


@pytest.mark.parametrize(
    "wanted",
    [sql(Symbol("n = 1")), {Symbol("sql-filter"): "n = 1"}, {"text": 1}],
    ids=["symbol", "bare", "name"],
)
@pytest.mark.rule("1-0/filter/sql")
def test_filter_at_which_rabbitmq_crashes_ends_the_session(streams: Server, wanted: dict[Any, Any]) -> None:
    client = streams.session()
    client.send(attach(RECEIVER, "/queues/s", terminus={"filter": wanted}))
    client.expect_end("amqp:internal-error")


@pytest.mark.rule("1-0/filter/sql")
def test_long_stream_is_searched_in_slices(streams: Server) -> None:
    numbered(streams, *[0] * 1000, 1)
    operations = streams.state.operations
    operations.pauses = lambda: True
    client = streams.session()
    link = reader(client, sql("n = 1"), credit=0)
    link.flow(link_credit=2, drain=True)
    assert not client.inbox and operations.pending
    slices = 0
    while operations.pending:
        operations.step()
        slices += 1
    assert slices > 2
    assert [type(each.what) for each in client.inbox] == [c.Transfer, c.Flow]


@pytest.mark.rule("1-0/attach/filter")
def test_operators_see_the_filters_in_force(streams: Server) -> None:
    client = streams.session()
    wanted = {
        **described(PROPERTIES, {Symbol("subject"): "&p:a", Symbol("group-sequence"): UInt(5)}, key="x"),
        **described(APPLICATION, {"k": None, "l": ["a", 1]}),
        **described("nope", 1),
    }
    reader(client, wanted)
    [connection] = streams.state.connections
    [session] = connection.session_facts()  # type: ignore[attr-defined]
    [link] = session["outgoing_links"]
    offset = "rabbitmq:stream-offset-spec"
    assert link["filter"] == [
        {"name": offset, "descriptor": offset, "value": "first"},
        {
            "name": "x",
            "descriptor": PROPERTIES,
            "value": [{"key": "subject", "value": "&p:a"}, {"key": "group-sequence", "value": 5}],
        },
        {
            "name": APPLICATION,
            "descriptor": APPLICATION,
            "value": [{"key": "k", "value": None}, {"key": "l", "value": ["a", 1]}],
        },
    ]
