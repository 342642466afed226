"""What the tests of AMQP 0-10 ask again and again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from compat_tests.clients.amqp_0_10.client import Message, Session, SessionFailed
from fakeamqp.protocols.amqp_0_10.codec.constants import ErrorCode, XaStatus
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, XaResult, Xid

__all__ = ["XID", "bodies", "carry_out", "drained", "fails", "inbox"]

XID = Xid(format=0, global_id=b"transaction", branch_id=b"branch")


def carry_out(session: Session, *commands: Command) -> None:
    """Commands about branches, each of which is answered with status ok."""
    for command in commands:
        assert session.call(command) == XaResult(XaStatus.XA_OK)


@contextmanager
def fails(code: ErrorCode | int) -> Iterator[None]:
    """The block ends in an exception of this code, which ends its session."""
    with pytest.raises(SessionFailed) as caught:
        yield
    assert caught.value.code == code, caught.value


def bodies(messages: list[Message]) -> list[bytes | None]:
    return [message.body for message in messages]


def drained(session: Session, destination: str) -> list[bytes | None]:
    """The bodies of all messages that have come for a destination."""
    return bodies(session.drain(destination))


def inbox(session: Session, queue: str, destination: str | None = None) -> str:
    """Subscribe to a queue without limits; answers with the destination, by default the queue's name."""
    session.subscribe(queue, destination or queue)
    return destination or queue
