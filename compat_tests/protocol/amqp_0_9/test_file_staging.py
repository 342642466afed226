"""Staging, in both directions: open, open-ok, stage."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_9.files import (
    consume,
    open_file,
    publish,
    publish_file,
    stage,
    stage_file,
    take,
)
from compat_tests.protocol.amqp_0_10.contents import (
    consume_files,
    publish_file as publish_over_0_10,
    take_files,
)
from compat_tests.scripted.amqp_0_9 import Child, Client, Server
from compat_tests.scripted.amqp_0_10 import Server as Server010
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9.codec import FileProperties, methods as m
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER

rule = pytest.mark.rule


def begin_stage(client: Client, body: bytes, size: int, channel: int = 1) -> None:
    """Send the beginning of a content."""
    client.send(m.FileStage(), channel)
    client.send_frame(2, channel, CONTENT_HEADER.pack(70, 0, size) + FileProperties().encode())
    if body:
        client.send_frame(3, channel, body)


# --- from the client -----------------------------------------------------------------------------------


@rule("0-9/file.open/requests-staging", "0-9/file.open-ok/staged-size#new", "0-9/file.stage/content")
def test_several_contents_are_staged_in_the_order_of_open(client: Client) -> None:
    client.declare("q")
    assert open_file(client, 1, "a") == 0
    assert open_file(client, 2, "b") == 0
    stage(client, b"1", filename="a")
    stage(client, b"22", filename="b")
    publish(client, identifier="b")
    publish(client, identifier="a")
    consume(client)
    first, second = take(client), take(client)
    assert [(each.body, each.properties.filename) for each in (first, second)] == [(b"22", "b"), (b"1", "a")]


@rule("0-9/file.open/content-size-01#zero")
def test_a_content_may_be_empty(client: Client) -> None:
    client.declare("q")
    publish_file(client, b"", filename="f")
    consume(client)
    file = take(client)
    assert (file.opened.content_size, file.body, file.properties.filename) == (0, b"", "f")


@rule("0-9/file.open/content-size-01#accurate")
@pytest.mark.parametrize("body", [b"12345", b"123"])
def test_staged_content_of_another_size_than_announced_is_refused_with_406(
    client: Client, body: bytes
) -> None:
    open_file(client, 4)
    stage(client, body)
    client.expect_channel_close(406)
    client.open_channel()
    # What is too short can be gone on with, and what is too long is nothing.
    assert open_file(client, 4) == (3 if len(body) == 3 else 0)


@rule("0-9/file.open/size-hint")
def test_file_open_with_size_over_limit_closes_channel_with_311(client: Client) -> None:
    largest = client.server.state.personality.largest_message
    if not largest:
        pytest.skip("this personality takes contents of any size")
    client.send(m.FileOpen(identifier="f", content_size=largest + 1))
    client.expect_channel_close(311)
    client.open_channel()
    assert open_file(client, largest) == 0


@rule("0-9/file.open-ok/expects-stage")
@pytest.mark.parametrize("method", [m.FileStage(), m.FileOpenOk()], ids=["stage", "open-ok"])
def test_stage_or_open_ok_without_an_open_closes_the_connection_with_503(
    client: Client, method: m.FileStage | m.FileOpenOk
) -> None:
    if isinstance(method, m.FileStage):
        client.send_content(method, FileProperties(), b"")
    else:
        client.send(method)
    client.expect_connection_close(503)


def test_file_open_beyond_1000_unpublished_contents_closes_the_connection_with_506(client: Client) -> None:
    for number in range(1000):
        open_file(client, 1, str(number))
    open_file(client, 1, "999")
    client.send(m.FileOpen(identifier="one more", content_size=1))
    client.expect_connection_close(506)


@rule("0-9/file.open-ok/staged-size#held")
@rule("0-9/file.open/restart", "0-9/file.open-ok/staged-size-01")
def test_file_open_of_a_staged_identifier_answers_the_size_already_staged(client: Client) -> None:
    client.declare("q")
    stage_file(client, b"body", filename="old")
    assert open_file(client, 4) == 4
    stage(client, b"", filename="new")
    publish(client)
    consume(client)
    file = take(client)
    assert (file.body, file.properties.filename) == (b"body", "new")


@rule("0-9/file.open/restart")
def test_file_open_with_another_size_starts_a_new_content(client: Client) -> None:
    stage_file(client, b"body")
    assert open_file(client, 5) == 0


@rule("0-9/file.open-ok/staged-size#held")
@rule("0-9/file.open/restart", "0-9/file.open-ok/staged-size-01", "0-9/file.open-ok/staged-size-02")
@pytest.mark.parametrize("how", ["transport", "restart of the channel", "method"])
def test_interrupted_staging_is_resumed_at_the_octet_already_staged(server: Server, how: str) -> None:
    client = server.client()
    open_file(client, 10)
    begin_stage(client, b"0123", 10)
    client.send_frame(3, 1, b"45")
    if how == "transport":
        client.drop()
    elif how == "method":
        client.send(m.FileAck())
        client.expect_connection_close(501)
    else:
        client.send(shared.ConnectionClose(reply_code=200), 0)
        client.expect(shared.ConnectionCloseOk, 0)
    client = server.client()
    assert open_file(client, 10) == 6
    stage(client, b"6789", filename="f")
    client.declare("q")
    publish(client)
    consume(client)
    file = take(client)
    assert (file.body, file.properties.filename) == (b"0123456789", "f")


@rule("0-9/file.open/restart")
def test_staged_content_of_a_closed_channel_can_be_published_on_another_channel(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    stage_file(client, b"body")
    client.send(m.FilePublish(routing_key="q", identifier="f"), 2)
    client.expect_channel_close(404, 2)
    client.open_channel(2)
    client.close_channel()
    assert open_file(client, 4, channel=2) == 4
    stage(client, b"", channel=2)
    publish(client, channel=2)
    assert client.count("q", 2) == 1


@rule("0-9/file.open/restart")
def test_fully_staged_file_can_be_published_after_reconnect(server: Server) -> None:
    client = server.client()
    stage_file(client, b"body")
    client.drop()
    client = server.client()
    client.declare("q")
    publish(client)
    assert client.count("q") == 1


def test_staged_file_is_not_visible_to_another_user(server: Server) -> None:
    client = server.client()
    stage_file(client, b"body")
    client.drop()
    server.state.access.add(User("eve", "pw", (), {"/": Permission(".*", ".*", ".*")}))
    other = server.client(user="eve", password="pw")
    assert open_file(other, 4) == 0


def test_restart_drops_staged_unpublished_files(server: Server) -> None:
    client = server.client()
    stage_file(client, b"body")
    server.restart()
    assert open_file(server.client(), 4) == 0


@rule("0-9/content/child-contents")
def test_child_contents_of_a_staged_file_are_delivered_with_it(client: Client) -> None:
    inner = Child(60, b"\0\0", b"inner", (Child(70, b"\0\0", b"innermost"),))
    client.declare("q")
    open_file(client, 4)
    client.send_content(m.FileStage(), FileProperties(), b"body", children=(inner,))
    publish(client)
    consume(client)
    file = take(client)
    assert (file.body, file.children) == (b"body", (inner,))


@rule("0-9/content/class-id-matches")
def test_a_header_of_another_class_ends_the_connection(client: Client) -> None:
    open_file(client, 1)
    client.send(m.FileStage())
    client.send_frame(2, 1, CONTENT_HEADER.pack(60, 0, 1) + b"\0\0")
    client.expect_connection_close(501)


# --- to the client -------------------------------------------------------------------------------------


@rule(
    "0-9/file.open/either-side#client",
    "0-9/file.open/either-side#server",
    "0-9/file.deliver/staged-first",
    "0-9/file.open-ok/expects-stage",
)
@rule("0-9/file.deliver/asynchronous")
def test_broker_opens_the_next_file_only_after_the_first_is_delivered(client: Client) -> None:
    client.declare("q")
    for body in (b"1", b"22"):
        publish_file(client, body)
    consume(client)
    first = client.expect(m.FileOpen)
    client.expect_nothing()
    client.send(m.FileOpenOk())
    assert client.expect_content(m.FileStage).body == b"1"
    assert client.expect(m.FileDeliver).identifier == first.identifier
    second = client.expect(m.FileOpen)
    assert (second.content_size, second.identifier != first.identifier) == (2, True)
    client.expect_nothing()


@rule("0-9/file.open-ok/staged-size-01")
def test_broker_stages_only_the_octets_that_the_client_does_not_hold(client: Client) -> None:
    client.declare("q")
    publish_file(client, b"0123456789")
    consume(client)
    assert take(client, held=7).body == b"789"


def test_open_ok_with_staged_size_over_file_size_is_refused_with_406(client: Client) -> None:
    client.declare("q")
    publish_file(client, b"body")
    consume(client)
    client.expect(m.FileOpen)
    client.send(m.FileOpenOk(staged_size=5))
    client.expect_channel_close(406)
    client.open_channel()
    assert client.count("q") == 1


@rule("0-9/file.open/restart")
def test_redelivered_file_is_staged_again_under_the_same_identifier(server: Server) -> None:
    client = server.client()
    client.declare("q")
    publish_file(client, b"0123456789")
    consume(client)
    first = take(client)
    client.drop()
    client = server.client()
    consume(client)
    again = take(client, held=4)
    assert (again.opened.identifier, again.body) == (first.opened.identifier, b"456789")
    assert again.deliver.redelivered


@rule("0-9/file.reject/after-staging")
@pytest.mark.letter
def test_a_large_file_goes_in_frames_that_fit(server: Server) -> None:
    client = server.client(frame_max=4096)
    client.declare("q")
    body = bytes(range(256)) * 50
    open_file(client, len(body))
    client.send_content(m.FileStage(), FileProperties(), body, frame_size=4000)
    publish(client)
    consume(client)
    assert take(client).body == body


# --- with 0-10 -----------------------------------------------------------------------------------------


def over_0_10(server: Server) -> Server010:
    """The same broker, for clients of 0-10."""
    same = Server010()
    same.state, same.clock, same._port = server.state, server.clock, 60_000
    return same


def test_files_go_to_clients_of_0_10_and_come_from_them(server: Server) -> None:
    client = server.client()
    client.declare("q")
    publish_file(client, b"body", filename="f.txt", priority=3, message_id="id", headers={"n": 5})
    session = over_0_10(server).session()
    consume_files(session)
    (file,) = take_files(session)
    said = file.properties
    assert (file.body, said.filename, said.priority, said.message_id) == (b"body", "f.txt", 3, "id")
    assert said.headers == {"n": 5}
    session.declare("r")
    publish_over_0_10(session, b"back", "r", filename="back.txt", reply_to="answers")
    consume(client, "r")
    back = take(client)
    assert (back.body, back.properties.filename, back.properties.reply_to) == (b"back", "back.txt", "answers")


def test_file_partly_staged_over_0_9_is_completed_over_0_10(server: Server) -> None:
    client = server.client()
    open_file(client, 10)
    begin_stage(client, b"0123", 10)
    client.drop()
    session = over_0_10(server).session()
    session.declare("q")
    publish_over_0_10(session, b"0123456789")
    client = server.client()
    consume(client)
    assert take(client).body == b"0123456789"
