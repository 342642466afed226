"""Scenarios of rules of the standard that no client breaks or tries: encodings, frames, states, orders."""

from __future__ import annotations

import time
from typing import Any

from compat_tests.differential.amqp_1_0.peers import shown
from compat_tests.differential.amqp_1_0.scenarios.play import Play, each, filled, scenario
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, attach, message, section
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import EMPTY_FRAME, PROTOCOL_HEADER, SASL_HEADER, frame
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Byte,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
    encode_value,
)

DETACH = c.Detach(handle=0, closed=True).encode()


def attached(play: Play) -> Any:
    """A peer with a sender link on handle 0."""
    return play.peer().session().sender(play.declare())


def until_closed(peer: Any) -> None:
    """Note what comes until the transport ends; RabbitMQ ends it some seconds after a failed login."""
    found: list[Any] = []
    ends = time.monotonic() + 10
    while not peer.transport.closed and time.monotonic() < ends:
        found += peer.frames()
    found += peer.frames()
    peer.lines += [shown(*each) for each in found]
    peer.lines.append("closed" if peer.transport.closed else "open")


# --- encodings ----------------------------------------------------------------------------------------------


@each(
    symbolic=b"\0\xa3\x10amqp:detach:list\xc0\x03\x02\x43\x41",
    ulong=b"\0\x80\0\0\0\0\0\0\0\x16\xc0\x03\x02\x43\x41",
    wide_list=b"\0\x53\x16\xd0\0\0\0\x06\0\0\0\x02\x43\x41",
    wide_uint=b"\0\x53\x16\xc0\x07\x02\x70\0\0\0\0\x41",
    small_uint=b"\0\x53\x16\xc0\x04\x02\x52\0\x41",
    boolean=b"\0\x53\x16\xc0\x04\x02\x43\x56\x01",
    null_at_end=b"\0\x53\x16\xc0\x04\x03\x43\x41\x40",
)
def encodings(play: Play, octets: bytes) -> None:
    peer = attached(play)
    peer.raw(frame(0, 0, octets))
    peer.note()


@each(
    missing_field=b"\0\x53\x16\x45",
    null_field=b"\0\x53\x16\xc0\x02\x01\x40",
    other_type=b"\0\x53\x16\xc0\x04\x01\xa1\x01a",
    too_many=b"\0\x53\x16\xc0\x06\x05\x43\x41\x40\x40\x40",
    not_a_list=b"\0\x53\x16\xc1\x01\0",
    no_descriptor=b"\xc0\x03\x02\x43\x41",
    unknown_descriptor=b"\0\x53\x7f\x45",
    section=b"\0\x53\x75\xa0\0",
    sasl_body=c.SaslInit(mechanism=Symbol("PLAIN")).encode(),
    cut=b"\0\x53\x16\xc0\x03\x02\x43",
    unknown_code=b"\0\x53\x16\xc0\x03\x02\x43\x3f",
)
def bad_bodies(play: Play, octets: bytes) -> None:
    peer = attached(play)
    peer.raw(frame(0, 0, octets))
    peer.note()


@each(
    one={"desired_capabilities": (Symbol("a"),)},
    many={"desired_capabilities": (Symbol("a"), Symbol("b"))},
    locales={"outgoing_locales": (Symbol("en-US"), Symbol("de")), "incoming_locales": (Symbol("fr"),)},
)
def multiples(play: Play, fields: dict[str, Any]) -> None:
    play.peer().open(**fields).note()


# --- frames -------------------------------------------------------------------------------------------------


@each(
    extended=b"\0\0\0\x14\x03\0\0\0\0\0\0\0" + DETACH,
    extended_long=b"\0\0\0\x18\x04\0\0\0\0\0\0\0\0\0\0\0" + DETACH,
    small_offset=b"\0\0\0\x10\x01\0\0\0" + DETACH,
    large_offset=b"\0\0\0\x10\x09\0\0\0" + DETACH,
    small_size=b"\0\0\0\x07\x02\0\0\0",
    other_type=b"\0\0\0\x10\x02\x05\0\0" + DETACH,
    sasl_type=b"\0\0\0\x10\x02\x01\0\0" + DETACH,
    empty=EMPTY_FRAME,
    empty_elsewhere=b"\0\0\0\x08\x02\0\0\x05",
    payload_behind=frame(0, 0, DETACH + b"abc"),
)
def frames(play: Play, octets: bytes) -> None:
    peer = attached(play)
    size = int.from_bytes(octets[:4], "big")
    if size >= 16 and len(octets) != size:
        octets = len(octets).to_bytes(4, "big") + octets[4:]
    peer.raw(octets)
    peer.note()


@scenario
def frames_cut_anywhere(play: Play) -> None:
    peer = attached(play)
    for octet in frame(0, 0, DETACH):
        peer.raw(bytes((octet,)))
    peer.note()


# --- SASL ---------------------------------------------------------------------------------------------------


@each(
    twice=[c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0guest\0guest")] * 2,
    response=[c.SaslResponse(response=b"x")],
    open=[c.Open(container_id="x")],
    outcome=[c.SaslOutcome(code=UByte(0))],
    lower=[c.SaslInit(mechanism=Symbol("plain"), initial_response=b"\0guest\0guest")],
    empty=[c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"")],
    none=[c.SaslInit(mechanism=Symbol("PLAIN"))],
    authzid=[c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"other\0guest\0guest")],
)
def sasl(play: Play, bodies: list[c.Composite]) -> None:
    peer = play.peer()
    peer.raw(SASL_HEADER)
    for body in bodies:
        peer.send(body)
    until_closed(peer)


@scenario
def sasl_hostname(play: Play) -> None:
    peer = play.peer()
    peer.raw(SASL_HEADER)
    said = {"initial_response": b"\0guest\0guest", "hostname": "vhost:none"}
    peer.send(c.SaslInit(mechanism=Symbol("PLAIN"), **said))
    peer.note()


@scenario
def sasl_on_another_channel(play: Play) -> None:
    peer = play.peer()
    peer.raw(SASL_HEADER)
    body = c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0guest\0guest")
    peer.raw(frame(1, 7, body.encode()))
    peer.note()


@scenario
def sasl_frame_of_512(play: Play) -> None:
    peer = play.peer()
    peer.raw(SASL_HEADER)
    said = c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0guest\0" + b"g" * 600)
    peer.send(said)
    until_closed(peer)


@each(sasl=SASL_HEADER, amqp_0_9_1=b"AMQP\0\0\x09\x01", other=b"HTTP/1.1")
def second_header(play: Play, octets: bytes) -> None:
    peer = play.peer()
    peer.raw(SASL_HEADER)
    peer.send(c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0guest\0guest"))
    peer.raw(octets)
    until_closed(peer)


@scenario
def second_header_missing(play: Play) -> None:
    peer = play.peer()
    peer.raw(SASL_HEADER)
    peer.send(c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0guest\0guest"))
    peer.send(c.Open(container_id="x"))
    until_closed(peer)


# --- connections --------------------------------------------------------------------------------------------


@scenario
def open_on_another_channel(play: Play) -> None:
    peer = play.peer()
    peer.raw(SASL_HEADER)
    peer.send(c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0guest\0guest"))
    peer.raw(PROTOCOL_HEADER)
    peer.send(c.Open(container_id="x"), 5)
    until_closed(peer)


@scenario
def begin_before_open(play: Play) -> None:
    peer = play.peer()
    peer.raw(SASL_HEADER)
    peer.send(c.SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0guest\0guest"))
    peer.raw(PROTOCOL_HEADER)
    peer.begin()
    until_closed(peer)


@scenario
def large_open(play: Play) -> None:
    peer = play.peer().open(properties={Symbol("a"): "x" * 600})
    peer.note()


@each(
    error=c.Close(error=c.Error(condition=Symbol("x:y"), description="why")),
    plain=c.Close(),
)
def close_on_another_channel(play: Play, body: c.Composite) -> None:
    peer = play.peer().session()
    peer.send(body, 3)
    peer.note()


@scenario
def frames_after_close(play: Play) -> None:
    peer = attached(play)
    peer.raw(frame(0, 0, c.Close().encode()) + frame(0, 0, DETACH))
    peer.note()


@scenario
def same_container_twice(play: Play) -> None:
    one, other = play.peer("one ").open(), play.peer("other ").open()
    one.note()
    other.note()


@scenario
def end_with_error(play: Play) -> None:
    peer = attached(play)
    peer.send(c.End(error=c.Error(condition=Symbol("x:y"), description="why")))
    peer.note()
    peer.begin()
    peer.note()


@scenario
def sessions_apart(play: Play) -> None:
    peer = play.peer().session().begin(1)
    peer.wait_for(c.Begin)
    peer.sender(play.declare())
    peer.send(attach(SENDER, play.declare(suffix="other"), 0), 1)
    peer.note()
    peer.send(c.End(), 0)
    peer.note()
    peer.send(c.Transfer(handle=0, delivery_id=0, delivery_tag=b"0"), 1, message())
    peer.note()


# --- flow control -------------------------------------------------------------------------------------------


@each(
    no_window={"incoming_window": 0},
    small_window={"incoming_window": 1},
    wrapped={"next_outgoing_id": 0xFFFFFFFF},
)
def windows(play: Play, fields: dict[str, Any]) -> None:
    queue, _ = filled(play, "classic", 3)
    peer = play.peer().open().begin(**fields)
    peer.wait_for(c.Begin)
    peer.receiver(queue, 0)
    first = {"next_outgoing_id": fields.get("next_outgoing_id", 0)}
    peer.flow(0, link_credit=5, incoming_window=fields.get("incoming_window", 10), **first)
    peer.note()
    peer.flow(incoming_window=50, **first)
    peer.note()


@scenario
def handle_without_credit_in_flow(play: Play) -> None:
    queue, peer = filled(play, "classic", 2)
    peer.receiver(queue, 1, credit=1)
    peer.note()
    peer.flow(1, next_incoming_id=1)
    peer.note()
    peer.flow(1, next_incoming_id=1, drain=True)
    peer.note()


@scenario
def echo_of_a_sender(play: Play) -> None:
    peer = attached(play)
    peer.flow(0, delivery_count=0, echo=True)
    peer.note()


@scenario
def credit_for_a_sender_link(play: Play) -> None:
    peer = attached(play)
    peer.flow(0, delivery_count=0, link_credit=5, available=7)
    peer.note()


@each(drop={"link_credit": 0}, more={"link_credit": 500}, largest={"link_credit": 0xFFFFFFFF})
def credits(play: Play, fields: dict[str, Any]) -> None:
    queue, peer = filled(play, "classic", 3)
    peer.receiver(queue, 1)
    peer.flow(1, echo=True, **fields)
    peer.note()


@scenario
def drain_without_messages(play: Play) -> None:
    queue, peer = filled(play, "classic", 0)
    peer.receiver(queue, 1)
    peer.flow(1, link_credit=3, drain=True)
    peer.note()
    peer.flow(1, link_credit=0, delivery_count=3, drain=False)
    peer.note()


# --- links --------------------------------------------------------------------------------------------------


@scenario
def same_name_twice(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.attach(SENDER, queue, 0, name="same")
    peer.attach(SENDER, queue, 1, name="same")
    peer.note()


@scenario
def same_name_both_ways(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session()
    peer.attach(SENDER, queue, 0, name="same")
    peer.attach(RECEIVER, queue, 1, name="same")
    peer.note()


@scenario
def handle_again(play: Play) -> None:
    queue = play.declare()
    peer = play.peer().session().sender(queue)
    peer.send(c.Detach(handle=0, closed=False))
    peer.note()
    peer.attach(SENDER, queue, 0)
    peer.note()


@scenario
def detach_with_error(play: Play) -> None:
    peer = attached(play)
    peer.send(c.Detach(handle=0, closed=True, error=c.Error(condition=Symbol("x:y"))))
    peer.note()


@each(
    no_count={"initial_delivery_count": None},
    far_count={"initial_delivery_count": 0xFFFFFFFE},
    small={"max_message_size": 10},
    properties={"properties": {Symbol("a"): "b"}},
    capabilities={"desired_capabilities": (Symbol("a"),), "offered_capabilities": (Symbol("b"),)},
    incomplete={"incomplete_unsettled": True},
    empty_unsettled={"unsettled": {}},
    no_target={"target": None},
    no_source={"source": None},
    durable={"terminus": {"durable": UInt(2), "expiry_policy": Symbol("never"), "timeout": UInt(60)}},
    target_capability={"terminus": {"capabilities": (Symbol("queue"),)}},
)
def sender_fields(play: Play, fields: dict[str, Any]) -> None:
    peer = play.peer().session()
    peer.attach(SENDER, play.declare(), 0, **fields)
    peer.note()
    peer.transfer()
    peer.note()


@each(
    no_target={"target": None},
    durable={"terminus": {"durable": UInt(2), "expiry_policy": Symbol("never"), "timeout": UInt(60)}},
    copy={"terminus": {"distribution_mode": Symbol("copy")}},
    default_outcome={"terminus": {"default_outcome": c.Accepted()}},
    outcomes={"terminus": {"outcomes": (Symbol("amqp:accepted:list"),)}},
    other_outcome={"terminus": {"outcomes": (Symbol("x"),)}},
    capability={"terminus": {"capabilities": (Symbol("queue"),)}},
    properties={"properties": {Symbol("a"): "b"}},
    unknown_filter={"terminus": {"filter": {Symbol("a"): Described(Symbol("a"), 1)}}},
    null_filter={"terminus": {"filter": {Symbol("a"): None}}},
    unsettled={"unsettled": {b"x": None}},
)
def receiver_fields(play: Play, fields: dict[str, Any]) -> None:
    queue, peer = filled(play, "classic", 1)
    peer.attach(RECEIVER, queue, 1, **fields)
    peer.note()
    peer.flow(1, link_credit=1)
    peer.note()


@each(short="x" * 20, middle="x" * 30)
def bare_names(play: Play, address: str) -> None:
    peer = play.peer().session()
    peer.attach(SENDER, address, 0)
    peer.note()


@scenario
def coordinator(play: Play) -> None:
    peer = play.peer().session()
    peer.send(
        attach(SENDER, None, 0, target=c.Coordinator(capabilities=(Symbol("amqp:local-transactions"),)))
    )
    peer.note()


@scenario
def transactional_publish(play: Play) -> None:
    peer = attached(play)
    peer.transfer(state=c.TransactionalState(txn_id=b"1"))
    peer.note()


# --- transfers ----------------------------------------------------------------------------------------------


@each(
    no_id={"delivery_id": None},
    no_tag={"delivery_tag": None},
    long_tag={"delivery_tag": b"x" * 32},
    too_long_tag={"delivery_tag": b"x" * 33},
    empty_tag={"delivery_tag": b""},
    format={"message_format": UInt(0)},
    other_format={"message_format": UInt(5)},
    state={"state": c.Received(section_number=UInt(0), section_offset=0)},
    accepted_state={"state": c.Accepted()},
    resume={"resume": True},
    batchable={"batchable": True},
    first={"rcv_settle_mode": UByte(0)},
    second={"rcv_settle_mode": UByte(1)},
    far_id={"delivery_id": 0xFFFFFFFF},
)
def transfers(play: Play, fields: dict[str, Any]) -> None:
    peer = attached(play)
    peer.transfer(**fields)
    peer.note()
    peer.transfer(delivery_id=100)
    peer.note()


@each(
    same_tag={"delivery_tag": b"0"},
    same_id={"delivery_id": UInt(0)},
    lower_id={"delivery_id": UInt(0xFFFFFFF0)},
)
def second_transfers(play: Play, fields: dict[str, Any]) -> None:
    peer = attached(play)
    peer.transfer()
    peer.note()
    peer.transfer(**fields)
    peer.note()


@each(
    other_tag={"delivery_tag": b"zz"},
    other_format={"message_format": UInt(7)},
    settled={"settled": True},
    unsettled={"settled": False},
    aborted={"aborted": True},
    no_fields={},
)
def continuations(play: Play, fields: dict[str, Any]) -> None:
    peer = attached(play)
    octets = message(b"abcdef")
    peer.transfer(payload=octets[:4], more=True, settled=None)
    peer.send(c.Transfer(handle=0, **fields), payload=octets[4:])
    peer.note()
    peer.transfer(delivery_id=100)
    peer.note()


@scenario
def interleaved_links(play: Play) -> None:
    peer = attached(play)
    peer.sender(play.declare(suffix="other"), 1)
    octets = message(b"abcdef")
    peer.send(c.Transfer(handle=0, delivery_id=0, delivery_tag=b"0", more=True), payload=octets[:4])
    peer.send(c.Transfer(handle=1, delivery_id=1, delivery_tag=b"0", more=True), payload=octets[:4])
    peer.send(c.Transfer(handle=0), payload=octets[4:])
    peer.send(c.Transfer(handle=1), payload=octets[4:])
    peer.note()


@scenario
def transfer_on_a_receiver(play: Play) -> None:
    queue, peer = filled(play, "classic", 0)
    peer.receiver(queue, 1)
    peer.transfer(1)
    peer.note()


@scenario
def sent_frames(play: Play) -> None:
    """A message whose frames do not end with those of its sections."""
    queue = play.declare()
    sender = play.peer().session().sender(queue)
    sender.transfer(payload=message(b"x" * 1000, application={"a": "b" * 300}))
    sender.wait_for(c.Disposition)
    peer = play.peer().session(max_frame_size=600)
    peer.receiver(queue, 0, credit=1)
    peer.note()


# --- settlement ---------------------------------------------------------------------------------------------


@each(
    sender_role={"role": False, "first": 0, "settled": True, "state": c.Accepted()},
    unknown={"role": True, "first": 77, "settled": True, "state": c.Accepted()},
    unknown_unsettled={"role": True, "first": 77, "settled": False, "state": c.Accepted()},
    no_state={"role": True, "first": 0, "settled": True},
    batchable={"role": True, "first": 0, "settled": False, "state": c.Accepted(), "batchable": True},
    last_before_first={"role": True, "first": 1, "last": 0, "settled": True, "state": c.Accepted()},
    declared={"role": True, "first": 0, "settled": True, "state": c.Declared(txn_id=b"1")},
    transactional={
        **{"role": True, "first": 0, "settled": True},
        "state": c.TransactionalState(txn_id=b"1", outcome=c.Accepted()),
    },
    received={
        "role": True,
        "first": 0,
        "settled": False,
        "state": c.Received(section_number=UInt(0), section_offset=0),
    },
    rejected_error={
        **{"role": True, "first": 0, "settled": True},
        "state": c.Rejected(error=c.Error(condition=Symbol("x:y"), description="why", info={Symbol("a"): 1})),
    },
)
def dispositions(play: Play, fields: dict[str, Any]) -> None:
    queue, peer = filled(play, "classic", 2)
    peer.receiver(queue, 1, credit=2)
    peer.note()
    peer.send(c.Disposition(**fields))
    peer.note()
    play.count(queue)


@scenario
def settled_twice(play: Play) -> None:
    queue, peer = filled(play, "classic", 1)
    peer.receiver(queue, 1, credit=1)
    peer.wait_for(c.Transfer)
    peer.settle(c.Accepted(), 0)
    peer.settle(c.Released(), 0)
    peer.note()
    play.count(queue)


@scenario
def settled_after_detach(play: Play) -> None:
    queue, peer = filled(play, "classic", 1)
    peer.receiver(queue, 1, credit=1)
    peer.wait_for(c.Transfer)
    peer.send(c.Detach(handle=1, closed=False))
    peer.note()
    peer.settle(c.Accepted(), 0)
    peer.note()
    play.count(queue)


# --- sections -----------------------------------------------------------------------------------------------


@each(
    delivery_annotations=message(b"x", delivery_annotations={Symbol("x-a"): 1}),
    delivery_annotations_other=message(b"x", delivery_annotations={Symbol("a"): 1}),
    symbolic=b"\0\xa3\x10amqp:data:binary\xa0\x01x",
    sequences=section(0x76, [1]) + section(0x76, [2]),
    mixed=section(0x75, b"x") + section(0x77, 1),
    values=section(0x77, 1) + section(0x77, 2),
    null_value=section(0x77, None),
    empty_data=section(0x75, b""),
    empty_sequence=section(0x76, []),
    order=section(0x75, b"x") + section(0x74, {"a": 1}),
    header_behind=section(0x75, b"x") + c.Header(durable=True).encode(),
    header_twice=c.Header(durable=True).encode() + c.Header(priority=UByte(3)).encode() + section(0x75, b"x"),
    footer_first=section(0x78, {Symbol("x-a"): 1}) + section(0x75, b"x"),
    footer=message(b"x", footer={Symbol("x-a"): 1}),
    footer_other=message(b"x", footer={Symbol("a"): 1}),
    application=message(b"x", application={"a": [1], "b": {"c": 1}}),
    application_symbol=message(b"x", application={Symbol("a"): 1}),
    application_null=message(b"x", application={"a": None}),
    annotations_null=message(b"x", annotations={Symbol("x-a"): None}),
    properties_type=b"\0\x53\x73\xc0\x03\x01\x52\x05" + section(0x75, b"x"),
    header_type=b"\0\x53\x70\xc0\x04\x01\xa1\x01a" + section(0x75, b"x"),
    header_empty=b"\0\x53\x70\x45" + section(0x75, b"x"),
    first_acquirer=c.Header(first_acquirer=False, delivery_count=UInt(5)).encode() + section(0x75, b"x"),
    ttl=c.Header(ttl=UInt(60000)).encode() + section(0x75, b"x"),
    priority=c.Header(priority=UByte(200)).encode() + section(0x75, b"x"),
    absolute_expiry=message(b"x", properties=c.Properties(absolute_expiry_time=1)),
    data_list=b"\0\x53\x75\x45",
    sequence_map=section(0x76, {"a": 1}),
    unknown_section=section(0x79, 1) + section(0x75, b"x"),
    trailing=section(0x75, b"x") + b"\0",
)
def sections(play: Play, octets: bytes) -> None:
    queue = play.declare()
    peer = play.peer().session().sender(queue)
    peer.transfer(payload=octets)
    peer.note()
    receiver = play.peer("receiver").session().receiver(queue, 0, credit=1)
    receiver.note()


@each(
    ulong=c.Properties(message_id=5),
    binary=c.Properties(message_id=b"x"),
    symbol=c.Properties(message_id=Symbol("x")),
    to_symbol=c.Properties(to=Symbol("x")),
    every=c.Properties(
        **{"message_id": "m", "user_id": b"guest", "to": "t", "subject": "s", "reply_to": "r"},
        **{"correlation_id": "c", "content_type": Symbol("a/b"), "content_encoding": Symbol("gzip")},
        **{"absolute_expiry_time": 1_700_000_000_000, "creation_time": 1_600_000_000_000},
        **{"group_id": "g", "group_sequence": 7, "reply_to_group_id": "rg"},
    ),
)
def properties(play: Play, value: c.Properties) -> None:
    queue = play.declare()
    peer = play.peer().session().sender(queue)
    peer.transfer(payload=message(b"x", properties=value))
    peer.note()
    receiver = play.peer("receiver").session().receiver(queue, 0, credit=1)
    receiver.note()


@each(
    boolean=[True, False],
    numbers=[UByte(1), UInt(70000), -5, 1.5],
    text=["é", Symbol("s"), b"\xff"],
    nested=[{"a": [1, {"b": None}]}, []],
)
def values(play: Play, value: Any) -> None:
    queue = play.declare()
    peer = play.peer().session().sender(queue)
    peer.transfer(payload=b"\0\x53\x77" + encode_value(value))
    peer.note()
    receiver = play.peer("receiver").session().receiver(queue, 0, credit=1)
    receiver.note()


NUMBERS: tuple[Any, ...] = (
    *(UByte(1), UShort(1), UInt(1), ULong(1), Byte(1), Short(1), Int(1), 1),
    *(1.0, Float(1), True, "1", Symbol("1")),
)


@each(uint=UInt(1), int=Int(1), long=1, ubyte=UByte(1), double=1.0, text="1", true=True)
def headers_exchange(play: Play, value: Any) -> None:
    queue, exchange = play.declare(), play.exchange("headers")
    play.bind(exchange, queue, "", x_match="all", a=value)
    peer = play.peer().session().sender(f"/exchanges/{exchange}")
    for number in NUMBERS:
        peer.transfer(payload=message(application={"a": number}))
    peer.note()


@scenario
def empty_after_close(play: Play) -> None:
    peer = play.peer().session()
    peer.raw(EMPTY_FRAME * 3)
    peer.note()
