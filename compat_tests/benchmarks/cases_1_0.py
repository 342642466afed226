"""The same conversations as in `cases`, in AMQP 1.0. `CASES` has those of all protocols."""

from __future__ import annotations

from compat_tests.benchmarks.cases import BODY, MANY, Timed, case
from compat_tests.benchmarks.cases_0_10 import CASES
from compat_tests.scripted.amqp_1_0 import RECEIVER, Client, Server, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import AMQP, frame
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol

__all__ = ["CASES"]

_WINDOW = 0x7FFFFFFF
BATCH = 100
"""Less than the credit of publishers."""


def transfers(first: int, octets: bytes, *, settled: bool) -> bytes:
    """A batch of transfers on the link with handle 0."""
    return b"".join(
        frame(
            AMQP,
            0,
            c.Transfer(
                handle=0, delivery_id=number, delivery_tag=number.to_bytes(4, "big"), settled=settled
            ).encode()
            + octets,
        )
        for number in range(first, first + BATCH)
    )


def client(*, receiver_settled: bool | None = None) -> Client:
    """A client with a link to a queue, and with one from it."""
    server = Server()
    server.client().declare("q")
    connected = server.session()
    connected.sender()
    if receiver_settled is not None:
        connected.receiver(handle=1, credit=_WINDOW, snd_settle_mode=int(receiver_settled))
    connected.take_all()
    return connected


def conversation(connected: Client, octets: bytes, *, settled: bool, accepts: bool = False) -> Timed:
    """A client that sends `octets` over and over, accepts what comes, and throws it away."""
    connection = connected.connection
    sent = 0

    def run() -> None:
        nonlocal sent
        for _ in range(MANY // BATCH):
            connection.receive(transfers(sent, octets, settled=settled))
            if accepts:
                said = c.Disposition(
                    role=RECEIVER, first=sent, last=sent + BATCH - 1, settled=True, state=c.Accepted()
                )
                connection.receive(frame(AMQP, 0, said.encode()))
            sent += BATCH
            flow = c.Flow(
                next_incoming_id=sent if accepts else 0,
                incoming_window=2048,
                next_outgoing_id=sent,
                outgoing_window=2048,
            )
            connection.receive(frame(AMQP, 0, flow.encode()))
            connection.sent(sum(map(len, connection.pending())))

    return run


WHOLE = message(
    BODY,
    header=c.Header(durable=True),
    properties=c.Properties(message_id="1", content_type=Symbol("text/plain")),
    application={"tenant": "a", "attempt": 1},
)


@case("broker, 1.0", "publish, each confirmed", MANY)
def _() -> Timed:
    return conversation(client(), message(BODY), settled=False)


@case("broker, 1.0", "publish, deliver settled", MANY)
def _() -> Timed:
    return conversation(client(receiver_settled=True), message(BODY), settled=True)


@case("broker, 1.0", "publish, each confirmed, deliver, one accept of 100", MANY)
def _() -> Timed:
    return conversation(client(receiver_settled=False), message(BODY), settled=False, accepts=True)


@case("broker, 1.0", "the same with properties", MANY)
def _() -> Timed:
    return conversation(client(receiver_settled=False), WHOLE, settled=False, accepts=True)
