"""Staging of files, in both directions: file.open, open-ok, stage. And file.publish of what is staged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.protocol.files_and_streams.conftest import Server
from compat_tests.scripted.contents import Peer, speaking
from compat_tests.scripted.contents_0_10 import Session
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9.codec import FileProperties, methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet

rule = pytest.mark.rule

Connect = Callable[..., Peer]

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def content_class() -> str:
    return "file"


# --- from the client ---------------------------------------------------------------------------------
@rule("0-9/file.open/requests-staging", "0-9/file.open-ok/staged-size#new", "0-9/file.stage/content")
@rule("0-9/file.publish/staged", "0-9/file.publish/exchange-01", "0-10/file.stage/content#carries")
def test_several_contents_are_staged_in_the_order_of_open_and_published_in_any(peer: Peer) -> None:
    peer.declare()
    assert (peer.open(1, "a"), peer.open(2, "b")) == (0, 0)
    peer.stage(b"1", filename="a").stage(b"22", filename="b")
    peer.publish_staged(identifier="b").publish_staged(identifier="a").consume()
    files = [(each.body, each.properties.filename) for each in peer.take_all()]
    assert files == [(b"22", "b"), (b"1", "a")]


@rule("0-9/file.open/content-size-01#zero", "0-10/file.open/content-size-content-size#zero")
def test_empty_file_without_properties_is_staged_and_delivered(peer: Peer) -> None:
    file = peer.declare().publish(b"").consume().take()
    kind = {"0-9": FileProperties, "0-10": structs.FileProperties}
    assert (file.body, file.properties) == (b"", kind["0-10" if isinstance(peer, Session) else "0-9"]())


@rule("0-9/file.open/content-size-01#accurate", "0-10/file.open/content-size-content-size#accurate")
@rule("0-10/file.open-ok/staged-size-staging")
@pytest.mark.parametrize(("body", "kept"), [(b"12345", 0), (b"123", 3)])
def test_stage_of_another_size_than_announced_is_refused_and_a_short_one_can_be_continued(
    protocol: str, peer: Peer, body: bytes, kept: int
) -> None:
    peer.open(4)
    with peer.fails({"0-9": 406, "0-10": 531}[protocol]):
        peer.stage(body)
    assert peer.open(4) == kept


@rule("0-9/file.open/size-hint")
@pytest.mark.parametrize("server", ["rabbitmq-4.3"], indirect=True)
def test_file_open_above_the_largest_message_size_is_refused(protocol: str, peer: Peer) -> None:
    largest = peer.server.state.personality.largest_message
    with peer.fails({"0-9": 311, "0-10": 506}[protocol]):
        peer.do("Open", identifier="f", content_size=largest + 1)
    assert peer.open(largest) == 0


@rule("0-9/file.open-ok/expects-stage", "0-10/file.stage/content#open")
@rule("0-10/file.open-ok/staged-size-behavior#server")
@pytest.mark.parametrize("name", ["Stage", "OpenOk"])
def test_stage_or_open_ok_without_an_open_is_refused(protocol: str, peer: Peer, name: str) -> None:
    with peer.fails({"0-9": 503, "0-10": 409}[protocol], connection=True):
        if name == "Stage":
            peer.stage(b"")
        else:
            peer.do("OpenOk")


def test_file_open_beyond_1000_unpublished_contents_is_refused_with_506(peer: Peer) -> None:
    for number in range(1000):
        peer.open(1, str(number))
    peer.open(1, "999")
    with peer.fails(506, connection=True):
        peer.do("Open", identifier="one more", content_size=1)


@rule("0-9/file.open-ok/staged-size#held", "0-9/file.open/restart", "0-9/file.open-ok/staged-size-01")
@rule("0-10/file.open/content-size-content-size#accurate", "0-10/file.open/identifier")
def test_file_open_answers_the_size_already_staged_of_the_same_content(peer: Peer) -> None:
    assert peer.declare().stage_file(b"body", filename="old").open(4, "another") == 0
    assert peer.stage(b"1234").open(4) == 4
    file = peer.stage(b"", filename="new").publish_staged().consume().take()
    assert (file.body, file.properties.filename) == (b"body", "new")
    assert peer.stage_file(b"body").open(5) == 0, "another size is another content"


def _connection_is_lost(peer: Any) -> None:
    peer.drop()


def _connection_is_closed(peer: Any) -> None:
    if isinstance(peer, Session):
        peer.session.client.send(c.ConnectionClose(reply_code=200))
    else:
        peer.client.send(m.ConnectionClose(reply_code=200), 0)
        peer.client.expect(m.ConnectionCloseOk, 0)


def _another_method_comes(peer: Any) -> None:
    if isinstance(peer, Session):
        peer.session.client.send(c.SessionDetach(name=peer.session.name), peer.number)
    else:
        peer.do("Ack")
        peer.client.expect_connection_close(501)


@rule("0-9/file.open-ok/staged-size#held", "0-9/file.open/restart", "0-9/file.open-ok/staged-size-01")
@rule("0-9/file.open-ok/staged-size-02", "0-10/file.open/identifier")
@rule("0-10/file.open-ok/staged-size-behavior#client", "0-10/file.open-ok/staged-size-staging")
@pytest.mark.parametrize("interrupt", [_connection_is_lost, _connection_is_closed, _another_method_comes])
def test_interrupted_staging_is_continued_at_the_octet_already_staged(
    connect: Connect, interrupt: Callable[[Peer], None]
) -> None:
    held = 0
    for part in (b"01", b"", b"2345"):
        peer = connect()
        assert peer.open(10) == held
        peer.begin_stage(part, 10 - held)
        interrupt(peer)
        held += len(part)
    peer = connect()
    assert peer.open(10) == 6
    peer.stage(b"6789", filename="f")
    peer.declare()
    peer.publish_staged()
    peer.consume()
    file = peer.take()
    assert (file.body, file.properties.filename) == (b"0123456789", "f")


def test_file_partly_staged_over_one_protocol_is_completed_over_the_other(
    protocol: str, server: Server, peer: Peer, connect: Connect
) -> None:
    peer.open(10)
    peer.begin_stage(b"0123", 10)
    peer.drop()
    other = connect(server=speaking(server, {"0-9": "0-10", "0-10": "0-9"}[protocol]))
    other.declare()
    other.publish(b"0123456789")
    other.consume()
    assert other.take().body == b"0123456789"


@rule("0-10/file.open/identifier", "0-10/file.open/content-size-content-size#accurate")
@rule("0-10/file.open-ok/staged-size-staging")
@pytest.mark.parametrize("partly", [True, False])
@pytest.mark.parametrize(
    "another",
    [{"user": "other"}, {"identifier": "another"}, {"size": 5}, {"restart": True}],
    ids=lambda each: next(iter(each)),
)
def test_staged_octets_of_another_user_identifier_or_size_or_before_a_restart_are_not_continued(
    server: Server, peer: Peer, connect: Connect, another: dict[str, Any], partly: bool
) -> None:
    server.state.access.add(User("other", "other", (), {"/": Permission(".*", ".*", ".*")}))
    if partly:
        peer.open(4)
        peer.begin_stage(b"bo", 4)
    else:
        peer.stage_file(b"body")
    peer.drop()
    if "restart" in another:
        server.restart()
    user = another.get("user", "guest")
    peer = connect(user=user, password=user)
    assert peer.open(another.get("size", 4), another.get("identifier", "f")) == 0


@rule("0-9/file.open/restart", "0-10/file.publish/staged")
@pytest.mark.parametrize("again", [False, True])
def test_staged_file_can_be_published_after_reconnect(peer: Peer, connect: Connect, again: bool) -> None:
    peer.stage_file(b"body", filename="name")
    peer.drop()
    peer = connect()
    peer.declare()
    if again:
        assert peer.open(4) == 4
        peer.stage(b"", filename="name")
    peer.publish_staged()
    peer.consume()
    file = peer.take()
    assert (file.body, file.properties.filename) == (b"body", "name")


@rule("0-9/file.open/restart")
def test_content_staged_on_a_closed_channel_can_be_published_on_another(peer: Peer) -> None:
    other = peer.sibling()
    peer.declare().stage_file(b"body")
    with other.fails(404):
        other.publish_staged()
    peer.close()
    assert other.open(4) == 4
    assert other.stage(b"").publish_staged().count() == 1


@pytest.mark.protocols("0-9")
@rule("0-9/content/class-id-matches")
def test_content_header_of_another_class_closes_the_connection_with_501(peer: Any) -> None:
    peer.open(1)
    with peer.fails(501, connection=True):
        peer.do("Stage")
        peer.client.send_frame(2, 1, CONTENT_HEADER.pack(60, 0, 1) + b"\0\0")


# --- publish -----------------------------------------------------------------------------------------
@rule("0-9/file.publish/asynchronous", "0-10/file.publish/staged")
def test_file_publish_waits_until_its_content_is_staged(peer: Peer) -> None:
    for queue in ("q", "r"):
        peer.declare(queue)
    peer.open(4)
    peer.publish_staged().publish_staged("r")
    assert (peer.count("q"), peer.count("r")) == (0, 0)
    peer.stage(b"body", filename="f")
    assert (peer.count("q"), peer.count("r")) == (1, 1)
    with peer.fails(404):
        peer.publish_staged()


@rule("0-9/file.publish/asynchronous")
def test_file_publish_is_dropped_when_its_channel_closes_before_the_content(peer: Peer) -> None:
    peer.declare().open(4)
    peer.publish_staged().end().open(4)
    assert peer.stage(b"body").count() == 0


@rule("0-9/file.publish/unknown-identifier", "0-10/file.publish/staged")
@pytest.mark.parametrize("published", [False, True], ids=["unknown", "published"])
def test_file_publish_of_unknown_or_published_identifier_fails_with_404(peer: Peer, published: bool) -> None:
    peer.declare()
    if published:
        peer.publish(b"1")
    with peer.fails(404):
        peer.publish_staged()


@rule("0-10/file.publish/staged")
def test_mandatory_file_is_returned_when_its_exchange_is_deleted_before_the_content(peer: Peer) -> None:
    peer.declare_exchange("e", "fanout").open(4)
    peer.publish_staged(exchange="e", mandatory=True)
    returned = peer.delete_exchange("e").stage(b"file").expect("Return")
    assert (returned.reply_code, returned.exchange) == (312, "e")


# --- to the client -----------------------------------------------------------------------------------
@rule("0-9/file.open/either-side#client", "0-9/file.open/either-side#server")
@rule("0-9/file.deliver/staged-first", "0-9/file.open-ok/expects-stage", "0-9/file.deliver/asynchronous")
@rule("0-10/file.deliver/staged", "0-10/file.open-ok/staged-size-behavior#server")
def test_broker_opens_stages_and_delivers_each_file_before_the_next(peer: Peer) -> None:
    peer.declare()
    for body in (b"1", b"22"):
        peer.publish(body, filename="notes.txt")
    first = peer.consume().expect("Open")
    assert first.content_size == 1
    peer.expect_nothing()
    staged = peer.do("OpenOk", staged_size=0).expect_content("Stage")
    assert (staged.body, staged.properties.filename) == (b"1", "notes.txt")
    assert peer.expect("Deliver").identifier == first.identifier
    second = peer.expect("Open")
    assert (second.content_size, second.identifier != first.identifier) == (2, True)
    peer.expect_nothing()


@rule("0-9/file.open-ok/staged-size-01", "0-10/file.open-ok/staged-size-behavior#server")
@pytest.mark.parametrize(("held", "rest"), [(2, b"tes"), (5, b"")])
def test_broker_stages_only_octets_that_client_does_not_hold(peer: Peer, held: int, rest: bytes) -> None:
    assert peer.declare().publish(b"notes").consume().take(held).body == rest


@rule("0-10/file.open-ok/staged-size-behavior#server")
def test_open_ok_with_a_staged_size_above_the_content_is_refused(protocol: str, peer: Peer) -> None:
    peer.declare().publish(b"notes").consume().expect("Open")
    with peer.fails({"0-9": 406, "0-10": 531}[protocol]):
        peer.do("OpenOk", staged_size=6)
    assert peer.count() == 1


@rule("0-9/file.open/restart", "0-10/file.deliver/staged", "0-10/file.open/identifier")
def test_file_is_staged_again_by_its_identifier_after_connection_loss(peer: Peer, connect: Connect) -> None:
    peer.declare()
    peer.publish(b"0123456789")
    peer.consume()
    first = peer.expect("Open")
    peer.drop()
    peer = connect()
    peer.consume()
    file = peer.take(4)
    assert (file.method.identifier, file.body, bool(file.method.redelivered)) == (
        first.identifier,
        b"456789",
        False,
    )
    peer.drop()
    peer = connect()
    peer.consume()
    file = peer.take()
    assert (file.method.identifier, file.method.redelivered) == (first.identifier, True)


@rule("0-9/file.cancel/stops#stops", "0-9/file.cancel/stops#delivered", "0-10/file.cancel/stops")
def test_file_in_staging_at_cancel_is_requeued_and_delivered_files_can_be_acked(peer: Peer) -> None:
    peer.declare()
    for body in (b"1", b"2", b"3"):
        peer.publish(body)
    delivered = peer.consume().take()
    opened = peer.expect("Open")
    assert peer.cancel().count() == 2
    peer.ack(delivered.tag).do("OpenOk", staged_size=0)
    assert peer.expect_content("Stage").body == b"2", "the client waits for what was opened"
    peer.expect_nothing()
    file = peer.consume().take(1)
    assert (file.method.identifier, bool(file.method.redelivered)) == (opened.identifier, False)
    assert peer.take().body == b"3"
    assert peer.end().count() == 2


@pytest.mark.protocols("0-9")
def test_file_in_staging_is_not_delivered_after_its_queue_is_deleted(peer: Any) -> None:
    peer.declare()
    peer.publish(b"1")
    peer.consume()
    peer.expect("Open")
    peer.client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    peer.do("OpenOk")
    peer.expect_content("Stage")
    peer.expect_nothing()
    peer.declare()
    peer.consume()  # The tag is free again.


@rule("0-9/file.reject/after-staging")
@pytest.mark.letter
def test_file_of_many_frames_is_delivered_whole(protocol: str, connect: Connect) -> None:
    peer = connect(**{{"0-9": "frame_max", "0-10": "max_frame_size"}[protocol]: 4096})
    peer.declare()
    peer.publish(CONTENT)
    peer.consume()
    assert peer.take().body == CONTENT


# --- sessions of 0-10 --------------------------------------------------------------------------------
@pytest.fixture
def many_frames(connect: Connect) -> Any:
    """A session that outlasts its transport, whose contents come in many frames."""
    return connect(max_frame_size=4096, timeout=60)


def stage_octets(peer: Any, sent: int) -> None:
    """Send a stage of CONTENT that breaks off after so many octets of its frames."""
    client = peer.session.client
    header = [structs.FileProperties(filename="f")]
    octets = client.command_bytes(x.FileStage(), peer.number, header=header, body=CONTENT)
    assert sent < len(octets)
    client.send_bytes(octets[:sent])


@pytest.mark.protocols("0-10")
@rule("0-10/file.open/identifier")
@pytest.mark.parametrize("sent", (*range(1, 10_400, 521), 4095, 4096, 4097))
def test_file_is_whole_after_its_stage_is_interrupted_at_any_octet(connect: Connect, sent: int) -> None:
    peer = connect(max_frame_size=4096)
    peer.open(len(CONTENT))
    stage_octets(peer, sent)
    peer.drop()
    peer = connect(max_frame_size=4096)
    peer.declare()
    peer.publish(CONTENT)
    peer.consume()
    assert peer.bodies() == [CONTENT]


@pytest.mark.protocols("0-10")
@rule("0-10/file.open/identifier")
def test_replayed_file_stage_does_not_duplicate_octets(many_frames: Any) -> None:
    peer = many_frames
    peer.declare()
    assert peer.open(len(CONTENT)) == 0
    staging = peer.session.next_id
    stage_octets(peer, 9000)
    peer.drop()
    peer.session = peer.session.attach_again(at=staging, has=1)
    peer.stage(CONTENT, filename="f")
    peer.publish_staged()
    peer.consume()
    assert peer.take().body == CONTENT


@pytest.mark.protocols("0-10")
@rule("0-10/file.open/identifier", "0-10/file.open-ok/staged-size-staging")
def test_file_stage_skipped_by_session_gap_can_be_continued(peer: Any) -> None:
    assert (peer.open(10, "one"), peer.open(3, "two")) == (0, 0)
    left_out = peer.session.next_id
    peer.begin_stage(b"0123", 10)
    peer.session.control(c.SessionGap(commands=SequenceSet.of(left_out)))
    peer.session.point(left_out + 1)
    peer.stage(b"two")
    assert peer.open(10, "one") == 4
    peer.stage(b"456789")
    peer.declare()
    for identifier in ("one", "two"):
        peer.publish_staged(identifier=identifier)
    peer.consume()
    assert peer.bodies() == [b"0123456789", b"two"]


@pytest.mark.protocols("0-10")
@rule("0-10/file.open/identifier")
def test_interrupted_stream_publish_does_not_change_staged_size(peer: Any, connect: Connect) -> None:
    peer.open(len(CONTENT))
    header = [structs.StreamProperties()]
    client = peer.session.client
    octets = client.command_bytes(x.StreamPublish(routing_key="q"), peer.number, header=header, body=CONTENT)
    client.send_bytes(octets[:-1])
    peer.drop()
    assert connect().open(len(CONTENT)) == 0


@pytest.mark.protocols("0-10")
@rule("0-10/file.open/identifier")
def test_identifier_opened_again_waits_for_a_single_file_stage(peer: Peer) -> None:
    peer.declare()
    assert [peer.open(3, identifier) for identifier in ("one", "two", "one")] == [0, 0, 0]
    peer.stage(b"TWO").stage(b"ONE")
    for identifier in ("one", "two"):
        peer.publish_staged(identifier=identifier)
    assert peer.consume().bodies() == [b"ONE", b"TWO"]


@pytest.mark.protocols("0-10")
@rule("0-10/file.publish/staged")
def test_file_publish_before_tx_select_is_not_rolled_back_with_a_later_transaction(peer: Peer) -> None:
    peer.declare().open(4)
    peer.publish_staged().select().stage(b"file")
    assert peer.rollback().count() == 1


@pytest.mark.protocols("0-10")
@rule("0-10/file.deliver/staged")
def test_session_attached_again_continues_delivery_of_files(connect: Connect) -> None:
    peer: Any = connect(timeout=60)
    peer.declare()
    for body in (b"1", b"2"):
        peer.publish(body)
    peer.consume()
    opened = peer.session.arrival(x.FileOpen)
    peer.drop()
    peer.session = peer.session.attach_again(at=peer.session.next_id, has=opened.id)
    files = peer.take_all()
    assert [(each.tag, each.body) for each in files] == [(1, b"1"), (2, b"2")]
    assert files[0].method.identifier == opened.what.identifier


@pytest.mark.protocols("0-10")
def test_session_with_file_stage_is_not_read_from_while_broker_is_blocked(server: Server, peer: Any) -> None:
    server.state.block("low on memory")
    peer.open(4)
    connection = peer.session.client.connection
    assert connection.reading
    peer.session.send(x.FileStage(), header=[structs.FileProperties()], body=b"file")
    assert not connection.reading
    server.state.unblock()
    assert connection.reading
