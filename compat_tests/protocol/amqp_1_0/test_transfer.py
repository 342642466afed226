"""Messages of AMQP 1.0 in both directions, and the outcomes of publishes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from compat_tests.scripted.amqp_1_0 import Client, Server, message, section
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Described, Milliseconds, Symbol, UByte, UInt, ULong

BODIES = {
    "data": message(b"abc"),
    "wide": b"\0\x80\0\0\0\0\0\0\0\x75\xb0\0\0\0\x03abc",
    "several": section(0x75, b"one") + section(0x75, b"two"),
    "value": message({"a": 1}),
    "sequence": section(0x76, [1, "a"]),
    "footer": message(b"x", footer={Symbol("x-f"): 1}),
    "properties": message(
        b"x",
        properties=c.Properties(message_id=UUID(int=5), to="t", subject="s", correlation_id=ULong(7)),
        application={"a": UInt(1), "b": None},
    ),
}


@pytest.mark.rule("1-0/transfer/bare-message")
@pytest.mark.parametrize("name", BODIES)
def test_bare_message_passes_byte_by_byte(server: Server, name: str) -> None:
    client = server.session()
    assert isinstance(client.sender().publish(BODIES[name]), c.Accepted)
    client.receiver(handle=1, credit=1)
    payload = client.take_all()[0].payload
    assert payload.endswith(BODIES[name])


@pytest.mark.rule("1-0/transfer/header")
def test_delivery_has_the_header_of_the_publisher_and_annotations_of_the_broker(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    client.sender().publish(message(header=c.Header(durable=True, priority=7, ttl=5000)))
    transfer, said = client.receiver(handle=1, credit=1).take()
    header = c.Header(durable=True, priority=7, ttl=5000, first_acquirer=True, delivery_count=0)
    assert said["header"] == header
    assert said["annotations"] == {"x-routing-key": "q", "x-exchange": ""}
    assert (transfer.delivery_tag, transfer.settled, transfer.more) == (b"\0\0\0\0", False, False)


@pytest.mark.rule("1-0/header/durable")
def test_message_without_header_is_durable_until_rabbitmq_4_1(rabbitmq: Server, rabbitmq_4_0: Server) -> None:
    for server, durable in ((rabbitmq, False), (rabbitmq_4_0, True)):
        server.session().sender().publish()
        assert next(iter(server.vhost.queues["q"].ready)).message.persistent is durable


@pytest.mark.rule("1-0/transfer/more")
def test_message_in_several_transfers_is_one_message(server: Server) -> None:
    octets = message(b"abcdef" * 100)
    client = server.session()
    sender = client.sender()
    sender.transfer(octets[:100], more=True)
    client.send(c.Transfer(handle=0, more=True), payload=octets[100:300])
    client.send(c.Transfer(handle=0), payload=octets[300:])
    assert isinstance(sender.outcome(), c.Accepted)
    assert next(iter(server.vhost.queues["q"].ready)).message.body == b"abcdef" * 100


@pytest.mark.rule("1-0/transfer/more")
def test_large_message_goes_out_in_frames_that_the_client_takes(server: Server) -> None:
    server.session().sender().publish(message(b"x" * 2000))
    client = server.session(max_frame_size=512)
    client.receiver(credit=1)
    frames = client.take_all()
    assert [bool(each.what.more) for each in frames] == [True] * (len(frames) - 1) + [False]
    assert b"".join(each.payload for each in frames).endswith(b"x" * 2000)
    assert all(len(each.what.encode()) + len(each.payload) <= 504 for each in frames)


@pytest.mark.rule("1-0/transfer/delivery-id")
def test_continuation_with_another_delivery_id_is_illegal(rabbitmq: Server, rabbitmq_4_0: Server) -> None:
    for server in (rabbitmq, rabbitmq_4_0):
        client = server.session()
        client.sender().transfer(message()[:5], more=True)
        client.send(c.Transfer(handle=0, delivery_id=9), payload=message()[5:])
        if server is rabbitmq:
            client.expect_detach("amqp:invalid-field")
        else:
            client.expect_end("amqp:connection:framing-error")


@pytest.mark.rule("1-0/transfer/settled")
@pytest.mark.parametrize(("mode", "settled", "name"), [(0, True, "unsettled"), (1, False, "settled")])
def test_settled_must_agree_with_the_mode_of_the_link(
    rabbitmq: Server, mode: int, settled: bool, name: str
) -> None:
    client = rabbitmq.session()
    client.sender(snd_settle_mode=mode).transfer(settled=settled)
    text = (
        f"sender settle mode is '{name}' but transfer settled flag is interpreted as being "
        f"'{str(settled).lower()}'"
    )
    client.expect_detach("amqp:invalid-field", text)


@pytest.mark.rule("1-0/transfer/outcome")
def test_unroutable_message_is_released_and_a_settled_one_is_dropped(client: Client) -> None:
    sender = client.sender("/exchanges/amq.direct/nothing")
    assert isinstance(sender.publish(), c.Released)
    sender.transfer(settled=True)
    client.expect_nothing()


@pytest.mark.rule("1-0/rejected/error")
def test_full_queue_rejects_and_4_3_names_it(rabbitmq: Server, rabbitmq_4_0: Server) -> None:
    for server in (rabbitmq, rabbitmq_4_0):
        arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
        server.vhost.queues.declare("full", QueueDeclaration(durable=True, arguments=arguments))
        outcome = server.session().sender("/queues/full").publish()
        assert isinstance(outcome, c.Rejected)
        if server is rabbitmq:
            assert outcome.error.condition == "amqp:resource-limit-exceeded"
            assert outcome.error.description == "queue 'full' exceeded maximum length"
            assert outcome.error.info == {"queue": "full", "reason": "maxlen"}
        else:
            assert outcome.error is None


@pytest.mark.rule("1-0/transfer/outcome")
def test_outcomes_of_one_turn_are_one_disposition(client: Client) -> None:
    from fakeamqp.protocols.amqp_1_0.codec.frames import frame

    client.sender()
    bodies = [c.Transfer(handle=0, delivery_id=each, delivery_tag=b"%d" % each) for each in range(3)]
    client.send_bytes(b"".join(frame(0, 0, each.encode() + message()) for each in bodies))
    got = client.expect(c.Disposition)
    assert (got.first, got.last, got.settled) == (0, 2, True)


@pytest.mark.rule("1-0/transfer/anonymous")
def test_message_on_the_anonymous_terminus_names_its_destination(rabbitmq: Server) -> None:
    sender = rabbitmq.session().sender(None)
    assert isinstance(sender.publish(message(properties=c.Properties(to="/queues/q"))), c.Accepted)
    assert isinstance(sender.publish(message(properties=c.Properties(to="/queues/none"))), c.Released)
    for to, condition in (
        (None, "amqp:precondition-failed"),
        ("nonsense", "amqp:precondition-failed"),
        ("/exchanges/none/k", "amqp:not-found"),
    ):
        outcome = sender.publish(message(properties=c.Properties(to=to)))
        assert isinstance(outcome, c.Rejected) and outcome.error.condition == condition


@pytest.mark.rule("1-0/transfer/anonymous")
def test_refused_settled_message_detaches_the_anonymous_terminus(server: Server) -> None:
    client = server.session()
    number = client.sender(None).transfer(settled=True)
    text = "anonymous terminus requires 'to' address to be set"
    error = client.expect_detach("amqp:precondition-failed", text)
    assert error.info == {"delivery-tag": str(number).encode()}


@pytest.mark.rule("1-0/annotations/x-cc")
def test_annotation_x_cc_has_further_routing_keys_since_4_1(rabbitmq: Server, rabbitmq_4_0: Server) -> None:
    for server, count in ((rabbitmq, 1), (rabbitmq_4_0, 0)):
        other = server.vhost.queues.create("other")
        sender = server.session().sender()
        sender.publish(message(annotations={Symbol("x-cc"): ["other"]}))
        assert len(other.ready) == count


@pytest.mark.rule("1-0/transfer/decode-error")
@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b"", "missing_amqp_message_body"),
        (b"\x41", "{not_a_message_section,{position,0}}"),
        (message(annotations={Symbol("k"): 1}), '{reserved_annotation_key,{symbol,<<"k">>}}'),
        (message(annotations={ULong(1): 1}), "{reserved_annotation_key,{ulong,1}}"),
    ],
)
def test_message_that_cannot_be_read_detaches_the_link(rabbitmq: Server, octets: bytes, why: str) -> None:
    client = rabbitmq.session()
    client.sender().transfer(octets)
    client.expect_detach("amqp:decode-error", f"failed to parse message: {why}")


@pytest.mark.rule("1-0/transfer/decode-error")
def test_message_that_cannot_be_read_ends_the_session_in_4_0(rabbitmq_4_0: Server) -> None:
    client = rabbitmq_4_0.session()
    client.sender().transfer(b"")
    client.expect_end("amqp:internal-error")


@pytest.mark.rule("1-0/properties/user-id")
def test_user_id_must_be_that_of_the_connection(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    sender = client.sender()
    assert isinstance(sender.publish(message(properties=c.Properties(user_id=b"guest"))), c.Accepted)
    sender.transfer(message(properties=c.Properties(user_id=b"other")))
    text = "user_id property set to 'other' but authenticated user was 'guest'"
    client.expect_detach("amqp:unauthorized-access", text)


@pytest.mark.rule("1-0/transfer/credit")
def test_credit_is_granted_again_when_half_is_used_and_more_is_illegal(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    sender = client.sender()
    for _ in range(85):
        sender.transfer(settled=True)
    granted = client.expect(c.Flow)
    assert (granted.delivery_count, granted.link_credit) == (85, 170)
    client.connection.sessions[0].receiving[0].credit = 0
    sender.transfer(settled=True)
    assert client.expect_detach("amqp:link:transfer-limit-exceeded").description is None


@pytest.mark.rule("1-0/transfer/max-message-size")
def test_message_above_the_largest_size_ends_the_session(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    sender = client.sender()
    sender.transfer(b"x" * 100_000, more=True)
    session = client.connection.sessions[0]
    session.receiving[0]._parts.octets = bytearray(16_777_216)
    client.send(c.Transfer(handle=0), payload=b"x")
    text = "message size (16777217 bytes) > maximum message size (16777216 bytes)"
    client.expect_end("amqp:link:message-size-exceeded", text)


@pytest.mark.rule("1-0/transfer/max-message-size")
def test_message_above_the_clients_largest_size_ends_the_session(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    client.sender().publish(message(b"x" * 500))
    client.receiver(handle=1, credit=1, max_message_size=100)
    assert client.expect(c.End).error.condition == "amqp:link:message-size-exceeded"
    assert len(rabbitmq.vhost.queues["q"].ready) == 1


# --- with 0-9-1 on the same queues ------------------------------------------------------------------------


@pytest.mark.rule("1-0/conversion/from-0-9-1")
def test_message_of_0_9_1_is_delivered_in_sections(rabbitmq: Server) -> None:
    other: Any = rabbitmq.client()
    other.publish(
        b"body",
        routing_key="q",
        headers={"a": 1, "x-b": "t", "list": [1]},
        delivery_mode=2,
        message_id="urn:uuid:00000000-0000-0000-0000-000000000005",
        reply_to="r/s",
        timestamp=5,
        type="kind",
        app_id="app",
        expiration="5000",
    )
    _, said = rabbitmq.session().receiver(credit=1).take()
    properties = said["properties"]
    assert said["data"] == b"body"
    assert (said["header"].durable, said["header"].ttl) == (True, 5000)
    assert said["application"] == {"a": 1}
    assert said["annotations"] == {
        **{"x-routing-key": "q", "x-exchange": "", "x-b": "t", "x-basic-type": "kind"}
    }
    assert (properties.message_id, properties.reply_to) == (UUID(int=5), "/queues/r%2Fs")
    assert (properties.creation_time, properties.group_id) == (Milliseconds(5000), "app")


@pytest.mark.rule("1-0/conversion/to-0-9-1")
def test_message_of_1_0_has_properties_and_headers(rabbitmq: Server) -> None:
    properties = c.Properties(
        message_id=ULong(5),
        correlation_id=UUID(int=6),
        reply_to="/queues/r%2Fs",
        content_type=Symbol("a/b"),
        creation_time=7000,
        group_id="app",
    )
    octets = message(
        b"body",
        header=c.Header(durable=True, priority=3, ttl=5000),
        annotations={Symbol("x-b"): "t"},
        properties=properties,
        application={"a": UInt(1)},
    )
    rabbitmq.session().sender().publish(octets)
    found = next(iter(rabbitmq.vhost.queues["q"].ready)).message
    said = found.properties
    assert (found.body, said.delivery_mode, said.priority, said.expiration) == (b"body", 2, 3, "5000")
    assert (said.message_id, said.correlation_id) == ("5", "urn:uuid:00000000-0000-0000-0000-000000000006")
    assert (said.reply_to, said.content_type, said.timestamp, said.app_id) == ("r/s", "a/b", 7, "app")
    assert said.headers == {"a": 1, "x-b": "t"}
    assert said.header_tag("a") == "i"


@pytest.mark.rule("1-0/conversion/to-0-9-1")
def test_body_without_data_sections_reaches_0_9_1_as_encoded_sections(rabbitmq: Server) -> None:
    octets = message({"a": 1}, footer={Symbol("x-f"): 1})
    rabbitmq.session().sender().publish(octets)
    found = next(iter(rabbitmq.vhost.queues["q"].ready)).message
    assert (found.body, found.properties.type) == (octets, "amqp-1.0")
    other: Any = rabbitmq.client()
    other.publish(found.body, routing_key="q", type="amqp-1.0")
    client = rabbitmq.session()
    client.receiver(credit=2)
    payloads = [each.payload for each in client.take_all()]
    assert len(payloads) == 2 and all(each.endswith(octets) for each in payloads)


OUT_OF_ORDER = {
    "properties twice": message(None, properties=c.Properties(subject="a"))
    + message(properties=c.Properties(subject="b")),
    "header behind properties": message(properties=c.Properties(subject="s"), header=c.Header(priority=1)),
    "value behind data": message() + message("value"),
    "text as data": section(0x75, "text"),
    "map as properties": section(0x73, {}) + message(),
    "cut": message(b"abcdef")[:-1],
}


@pytest.mark.rule("1-0/transfer/decode-error")
@pytest.mark.parametrize("name", OUT_OF_ORDER)
def test_message_with_sections_out_of_order_or_of_other_types_detaches_the_link(
    rabbitmq: Server, name: str
) -> None:
    client = rabbitmq.session()
    client.sender().transfer(OUT_OF_ORDER[name])
    error = client.expect_detach("amqp:decode-error")
    assert error.description.startswith("failed to parse message: {")


@pytest.mark.rule("1-0/transfer/decode-error")
def test_rabbitmq_4_0_does_not_look_behind_the_beginning_of_the_body(rabbitmq_4_0: Server) -> None:
    client = rabbitmq_4_0.session()
    octets = message(b"abcdef")[:-1]
    assert isinstance(client.sender().publish(octets), c.Accepted)
    client.receiver(handle=1, credit=1)
    assert client.take_all()[0].payload.endswith(octets)


@pytest.mark.rule("1-0/transfer/decode-error")
def test_described_application_property_ends_the_session(server: Server) -> None:
    client = server.session()
    client.sender().transfer(message(application={"d": Described(Symbol("d"), 1)}))
    client.expect_end("amqp:internal-error")


@pytest.mark.rule("1-0/detach/queue-deleted")
def test_sender_that_has_published_is_detached_when_its_queue_is_deleted(server: Server) -> None:
    client = server.session()
    used, unused = client.sender(), client.sender(handle=1)
    used.publish()
    server.vhost.queues.delete("q", None)
    client.expect_detach("amqp:resource-deleted")
    client.expect_detach("amqp:resource-deleted")
    client.expect_nothing()
    assert (used.handle, unused.handle) == (0, 1)


@pytest.mark.rule("1-0/transfer/outcome")
@pytest.mark.parametrize("value", [3, UInt(3), UByte(3), Milliseconds(3), 3.0])
def test_headers_exchange_matches_numbers_of_all_types(rabbitmq: Server, value: Any) -> None:
    host = rabbitmq.vhost
    host.bindings.bind("amq.headers", host.queues["q"], "", {"x-match": "all", "h": 3})
    link = rabbitmq.session().sender("/exchanges/amq.headers")
    expected = c.Accepted if not isinstance(value, float) else c.Released
    assert isinstance(link.publish(message(application={"h": value})), expected)


@pytest.mark.rule("1-0/transfer/outcome")
def test_limit_in_bytes_counts_the_bare_message(server: Server) -> None:
    arguments = {"x-max-length-bytes": 20, "x-overflow": "reject-publish"}
    server.vhost.queues.declare("small", QueueDeclaration(durable=True, arguments=arguments))
    link = server.session().sender("/queues/small")
    outcomes = [link.publish(message(b"12345")).NAME for _ in range(3)]
    assert outcomes == ["accepted", "accepted", "rejected"]


@pytest.mark.rule("1-0/transfer/more")
def test_transfers_of_rabbitmq_4_0_have_all_fields(rabbitmq: Server, rabbitmq_4_0: Server) -> None:
    sizes = []
    for server in (rabbitmq, rabbitmq_4_0):
        client = server.session(max_frame_size=512)
        client.sender().publish(message(b"x" * 300))
        client.sender(handle=1)
        link = client.receiver(handle=2)
        octets = message(b"x" * 600)
        server.vhost.queues["q"].purge()
        client.sender(handle=3).transfer(octets[:400], more=True)
        client.send(c.Transfer(handle=3), payload=octets[400:])
        client.take_all()
        link.flow(link_credit=1, delivery_count=link.attached.initial_delivery_count)
        sizes.append(len(next(each.payload for each in client.take_all() if each.payload)))
    assert sizes[0] - sizes[1] == 5


@pytest.mark.rule("1-0/transfer/outcome")
def test_length_of_quorum_queue_counts_bytes_of_the_bare_message(rabbitmq: Server) -> None:
    limits = {"x-queue-type": "quorum", "x-max-length-bytes": 20, "x-overflow": "reject-publish"}
    rabbitmq.vhost.queues.declare("bounded", QueueDeclaration(durable=True, arguments=limits))
    link = rabbitmq.session().sender("/queues/bounded")
    outcomes = [type(link.publish(message(bytes(5)))) for _ in range(5)]
    assert outcomes == [c.Accepted] * 3 + [c.Rejected] * 2  # As on 4.3.6: 10 bytes each.
