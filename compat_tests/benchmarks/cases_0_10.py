"""The same conversations as in `cases`, in AMQP 0-10. `CASES` has those of both."""

from __future__ import annotations

from uuid import UUID

from compat_tests.benchmarks.cases import BODY, CASES, MANY, Timed, case
from compat_tests.scripted.amqp_0_10 import Server, Session
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import SegmentType
from fakeamqp.protocols.amqp_0_10.codec.frames import control_frame, encode_frames
from fakeamqp.protocols.amqp_0_10.codec.serial import MODULUS, SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Struct, encode_header

__all__ = ["CASES"]


def transfer(*header: Struct, exchange: str = "") -> bytes:
    return encode_frames(
        0,
        (
            (SegmentType.COMMAND, x.MessageTransfer(destination=exchange, accept_mode=1).encode()),
            (SegmentType.HEADER, encode_header(header)),
            (SegmentType.BODY, BODY),
        ),
        65535,
    )


def to_queue(key: str = "q") -> structs.DeliveryProperties:
    return structs.DeliveryProperties(routing_key=key)


def described(number: int) -> structs.MessageProperties:
    return structs.MessageProperties(
        content_type="application/json",
        message_id=UUID(int=number),
        application_headers={"tenant": "a", "attempt": 1},
    )


def subscriber(*, accept_mode: int, window: bool) -> Session:
    session = Server().session()
    session.declare("q")
    session.subscribe("q", accept_mode=accept_mode, window=window)
    return session


def conversation(session: Session, octets: bytes, transfers: int = MANY, *, accepts: bool = False) -> Timed:
    """A session that sends `octets` over and over and has done what comes, which is thrown away."""
    connection = session.client.connection
    known = 0  # The client's own commands that it knows to be done.
    came = session.end.outgoing.next_id

    def run() -> None:
        nonlocal known, came
        connection.receive(octets)
        ids = SequenceSet.between(came % MODULUS, (came + transfers - 1) % MODULUS)
        came += transfers
        answers = control_frame(0, c.SessionCompleted(commands=ids).encode())
        if accepts:
            answers += encode_frames(0, ((1, x.MessageAccept(transfers=ids).encode()),), 65535)
        known += transfers
        done = SequenceSet.between(0, known % MODULUS)
        answers += control_frame(0, c.SessionKnownCompleted(commands=done).encode())
        connection.receive(answers)
        connection.sent(sum(map(len, connection.pending())))

    return run


@case("broker, 0-10", "publish, deliver without accept", MANY)
def _() -> Timed:
    return conversation(subscriber(accept_mode=1, window=False), transfer(to_queue()) * MANY)


@case("broker, 0-10", "publish, deliver in a window", MANY)
def _() -> Timed:
    session = subscriber(accept_mode=1, window=True)
    return conversation(session, transfer(to_queue()) * MANY)


@case("broker, 0-10", "publish, deliver, one accept of all", MANY)
def _() -> Timed:
    session = subscriber(accept_mode=0, window=False)
    return conversation(session, transfer(to_queue()) * MANY, accepts=True)


@case("broker, 0-10", "publish, deliver in a window, one accept of all", MANY)
def _() -> Timed:
    session = subscriber(accept_mode=0, window=True)
    return conversation(session, transfer(to_queue()) * MANY, accepts=True)


@case("broker, 0-10", "publish, deliver, each with properties of its own", MANY * 2)
def _() -> Timed:
    session = subscriber(accept_mode=0, window=True)
    octets = b"".join(transfer(to_queue(), described(number)) for number in range(MANY * 2))
    return conversation(session, octets, MANY * 2, accepts=True)


@case("broker, 0-10", "publish to a fanout of ten", MANY)
def _() -> Timed:
    session = Server().session()
    for number in range(10):
        session.declare(f"q{number}")
        session.bind(f"q{number}", "amq.fanout")
        session.subscribe(f"q{number}", f"d{number}", accept_mode=1)
    return conversation(session, transfer(exchange="amq.fanout") * (MANY // 10), MANY)
