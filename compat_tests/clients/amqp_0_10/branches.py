"""What the tests of distributed transactions do again and again."""

from __future__ import annotations

from compat_tests.clients.amqp_0_10.client import UNLIMITED, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.constants import XaStatus
from fakeamqp.protocols.amqp_0_10.codec.structs import Command, MessageProperties, XaResult, Xid

__all__ = [
    "OK",
    "ROLLED_BACK",
    "TIMED_OUT",
    "XID",
    "begin",
    "commit",
    "contents",
    "depths",
    "end",
    "prepare",
    "publish",
    "ready",
    "roll_back",
    "status",
    "swap",
    "swapped",
]

OK, ROLLED_BACK, TIMED_OUT = XaStatus.XA_OK, XaStatus.XA_RBROLLBACK, XaStatus.XA_RBTIMEOUT

XID = Xid(format=0, global_id=b"transaction", branch_id=b"branch")


def status(session: Session, command: Command, expected: XaStatus = OK) -> None:
    """The command is answered with this status."""
    result = session.call(command)
    assert isinstance(result, XaResult)
    assert result.status == expected, XaStatus(result.status or 0)


def begin(session: Session, xid: Xid = XID, **flags: bool) -> None:
    status(session, x.DtxStart(xid=xid, **flags))


def end(session: Session, xid: Xid = XID, **flags: bool) -> None:
    status(session, x.DtxEnd(xid=xid, **flags))


def prepare(session: Session, xid: Xid = XID) -> None:
    status(session, x.DtxPrepare(xid=xid))


def commit(session: Session, xid: Xid = XID, *, one_phase: bool = False) -> None:
    status(session, x.DtxCommit(xid=xid, one_phase=one_phase))


def roll_back(session: Session, xid: Xid = XID) -> None:
    status(session, x.DtxRollback(xid=xid))


def publish(session: Session, queue: str, id_: bytes) -> None:
    session.publish(b"message", key=queue, properties=MessageProperties(correlation_id=id_))


def swap(session: Session, source: str, target: str) -> None:
    """Take a message out of one queue and send it to another."""
    session.subscribe(source, "swap", credit=1)
    message = session.get("swap")
    session.cancel("swap")
    session.accept(message)
    publish(session, target, message.properties.correlation_id or b"")


def depths(session: Session) -> tuple[int, int]:
    return session.depth("a"), session.depth("b")


def contents(session: Session, queue: str) -> list[bytes | None]:
    """The ids of the messages in a queue; they are released again."""
    session.subscribe(queue, "look", credit=UNLIMITED)
    messages = session.drain("look")
    session.cancel("look")
    session.release(*messages)
    return [message.properties.correlation_id for message in messages]


def swapped(session: Session, id_: bytes = b"one") -> None:
    """In a branch, which has been ended, a message was taken out of `a` and sent to `b`."""
    publish(session, "a", id_)
    begin(session)
    swap(session, "a", "b")
    end(session)
    assert depths(session) == (0, 0), "neither queue has what a branch has taken, or sent"


def ready(session: Session) -> None:
    """A branch that has sent a message, and was ended."""
    begin(session)
    publish(session, "a", b"whatever")
    end(session)
