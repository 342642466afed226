"""Class file: windows."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_10.contents import (
    ack_file,
    consume_files,
    next_command,
    publish_file,
    take_file,
    take_files,
)
from compat_tests.scripted.amqp_0_10 import Client, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x


@pytest.mark.rule("0-10/file.qos/prefetch-count-prefetch-discretion", "0-10/file.qos-ok/confirm")
def test_file_prefetch_count_limits_unacked_files(session: Session) -> None:
    session.declare("q")
    session.call(x.FileQos(prefetch_count=2))
    next_command(session, x.FileQosOk)
    for n in range(5):
        publish_file(session, b"%d" % n)
    consume_files(session)
    first, second = take_files(session)
    ack_file(session, second.tag)
    (third,) = take_files(session)
    assert third.body == b"2"
    ack_file(session, third.tag, multiple=True)
    assert first.tag < third.tag
    assert [file.body for file in take_files(session)] == [b"3", b"4"]


@pytest.mark.rule("0-10/file.qos-ok/confirm")
def test_file_qos_ok_is_numbered_as_command_of_broker(session: Session) -> None:
    session.send(x.FileQos(prefetch_count=1))
    _, got = next_command(session, x.FileQosOk)
    assert got.what.encode()[:2] == b"\x09\x02"
    assert got.id == 0, "it is numbered like all commands of the broker's"


@pytest.mark.rule("0-10/file.qos/prefetch-size#limits")
def test_file_prefetch_size_limits_octets_of_unacked_files(session: Session) -> None:
    session.declare("q")
    session.call(x.FileQos(prefetch_size=100))
    next_command(session, x.FileQosOk)
    for n in b"12":
        publish_file(session, bytes((n,)) * 60)
    consume_files(session)
    (only,) = take_files(session)
    ack_file(session, only.tag)
    assert [file.body[:1] for file in take_files(session)] == [b"2"]


@pytest.mark.rule("0-10/file.qos/prefetch-size#no-ack")
def test_file_prefetch_does_not_limit_no_ack_consumer(session: Session) -> None:
    session.declare("q")
    session.call(x.FileQos(prefetch_size=100, prefetch_count=1))
    next_command(session, x.FileQosOk)
    for n in b"12":
        publish_file(session, bytes((n,)) * 60)
    consume_files(session, no_ack=True)
    assert session.query("q").message_count == 0, "both are on their way"
    assert len(take_files(session)) == 2


@pytest.mark.rule("0-10/file.qos/prefetch-count-prefetch-discretion")
def test_file_prefetch_count_includes_files_delivered_before_file_qos(session: Session) -> None:
    session.declare("q")
    publish_file(session, b"1")
    consume_files(session)
    first = take_file(session)
    session.call(x.FileQos(prefetch_count=1))
    next_command(session, x.FileQosOk)
    publish_file(session, b"2")
    assert take_files(session) == []
    ack_file(session, first.tag)
    assert [file.body for file in take_files(session)] == [b"2"]


@pytest.mark.rule("0-10/file.qos/prefetch-count-prefetch-discretion")
def test_removed_file_prefetch_count_releases_waiting_file(session: Session) -> None:
    session.declare("q")
    session.call(x.FileQos(prefetch_count=1))
    next_command(session, x.FileQosOk)
    publish_file(session, b"1")
    publish_file(session, b"2")
    consume_files(session)
    assert len(take_files(session)) == 1
    session.call(x.FileQos(prefetch_count=0))
    next_command(session, x.FileQosOk)
    assert [file.body for file in take_files(session)] == [b"2"]


@pytest.mark.rule("0-10/file.qos/global")
def test_global_file_prefetch_applies_to_all_sessions_of_connection(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q1")
    one.declare("q2")
    one.call(x.FileQos(prefetch_count=1, global_=True))
    next_command(one, x.FileQosOk)
    publish_file(one, b"1", "q1")
    publish_file(one, b"2", "q2")
    consume_files(one, "q1")
    file = take_file(one)
    consume_files(two, "q2")
    two.expect_nothing()
    ack_file(one, file.tag)
    assert take_file(two).body == b"2"


@pytest.mark.rule("0-10/file.qos/global")
def test_file_prefetch_not_global_applies_only_to_its_session(client: Client) -> None:
    one, two = client.session(b"one", 1), client.session(b"two", 2)
    one.declare("q")
    one.call(x.FileQos(prefetch_count=1))
    next_command(one, x.FileQosOk)
    for n in range(3):
        publish_file(two, b"%d" % n)
    consume_files(one)
    take_file(one)
    one.expect_nothing()
    consume_files(two)
    assert len(take_files(two)) == 2
