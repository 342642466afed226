"""A publisher and a subscriber over a network that breaks at random, with settling and releasing at random.

Whatever happens, each message is accepted once, and they come in order unless some are released.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from compat_tests.clients.amqp_0_10.client import ConnectionLost, Message, Session, connect
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_10.codec import commands as x
from fakeamqp.protocols.amqp_0_10.codec.constants import CreditUnit, FlowMode
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import Command

MESSAGES = 60


def ids(messages: list[Message]) -> SequenceSet:
    return SequenceSet.of(*sorted(message.id for message in messages))


class World:
    """Two sessions, what they have done, and what breaks the network."""

    def __init__(self, broker: Broker, seed: int) -> None:
        self.random = Random(seed)
        self.broker = broker
        self.network = broker.faults.network
        self.transactional = self.random.random() < 0.5
        self.sent: list[bytes] = []
        self.visible = 0
        self.held: list[Message] = []
        self.accepted: list[Message] = []
        self.in_order = True
        self.losses = 0
        self.publisher = Session(b"publisher", None)
        self.subscriber = Session(b"subscriber", None)
        with connect(broker) as connection:
            connection.session(b"setup").declare("q")
        for session in (self.publisher, self.subscriber):
            self.attach(session)
        if self.transactional:
            self.call(self.publisher, x.TxSelect())
        for command in (
            x.MessageSubscribe(queue="q", destination="d"),
            x.MessageSetFlowMode(destination="d", flow_mode=FlowMode.WINDOW),
            x.MessageFlow(destination="d", unit=CreditUnit.BYTE, value=0xFFFFFFFF),
            x.MessageFlow(destination="d", unit=CreditUnit.MESSAGE, value=self.random.randint(1, 20)),
        ):
            self.call(self.subscriber, command)

    # --- however often it takes -----------------------------------------------------------------------

    def attach(self, session: Session) -> None:
        while not session.attached:
            self.losses += 1
            if self.losses > 3:
                self.mend()  # Or what has to be sent again might never fit between two cuts.
            try:
                connection = connect(self.broker, max_frame_size=self.random.choice([4096, 65535]))
                session.attach(connection, force=True)
            except ConnectionLost:
                continue

    def call(self, session: Session, command: Command) -> Any:
        id_ = session.send(command)
        while True:
            try:
                result = session.result(id_)
                self.losses = 0
                return result
            except ConnectionLost:
                self.attach(session)

    def get(self) -> Message:
        while True:
            try:
                message = self.subscriber.get("d")
                self.losses = 0
                return message
            except ConnectionLost:
                self.attach(self.subscriber)

    # --- what may happen next -------------------------------------------------------------------------

    def publish(self) -> None:
        """Send a few messages, and do not wait."""
        for _ in range(min(self.random.randint(1, 5), MESSAGES - len(self.sent))):
            size = self.random.choice([0, 10, 5000, 30_000])
            body = b"%d" % len(self.sent) + bytes(size)
            self.sent.append(body)
            self.publisher.publish(body, key="q", wait=False)

    def make_visible(self) -> None:
        """Wait until all that was sent is there, committed if need be."""
        self.call(self.publisher, x.TxCommit() if self.transactional else x.ExecutionSync())
        self.visible = len(self.sent)

    def receive(self) -> None:
        """Take one of the messages that there are."""
        if self.visible > len(self.accepted) + len(self.held):
            message = self.get()
            self.held.append(message)
            self.subscriber.complete(message)

    def settle(self) -> None:
        """Accept some that are held, or release them."""
        if not self.held:
            return
        self.random.shuffle(self.held)
        count = self.random.randint(1, len(self.held))
        some, self.held = self.held[:count], self.held[count:]
        if self.random.random() < 0.2:
            self.in_order = False
            self.call(self.subscriber, x.MessageRelease(transfers=ids(some)))
        else:
            self.call(self.subscriber, x.MessageAccept(transfers=ids(some)))
            self.accepted += some

    def cut_later(self) -> None:
        """Every connection ends after so many bytes, from now on."""
        self.network.cut_after(
            bytes=self.random.randint(1, 20_000),
            how=self.random.choice(["fin", "reset"]),
            direction=self.random.choice(["sent", "received"]),
        ).optional()

    def cut_now(self) -> None:
        self.random.choice([self.network.reset, self.network.disconnect])()

    def mend(self) -> None:
        self.network.restore()

    def run(self) -> None:
        steps = [
            self.publish,
            self.make_visible,
            self.receive,
            self.settle,
            self.cut_later,
            self.cut_now,
            self.mend,
        ]
        while len(self.accepted) < MESSAGES:
            (step,) = self.random.choices(steps, [6, 3, 8, 4, 2, 2, 3])
            step()

    def check(self) -> None:
        """Everything was accepted once, and nothing is left."""
        self.mend()
        self.accepted.sort(key=lambda message: message.id)
        bodies = [message.body or b"" for message in self.accepted]
        if not self.in_order:
            bodies.sort(key=lambda body: int(body.rstrip(b"\0")))
        assert bodies == self.sent
        for session in (self.publisher, self.subscriber):
            self.attach(session)
        assert self.call(self.subscriber, x.QueueQuery(queue="q")).message_count == 0
        assert not self.subscriber.incoming["d"]
        queue = self.broker.queue("q")
        assert (queue.ready, queue.unacked) == (0, 0)
        for session in (self.publisher, self.subscriber):
            if session.connection is not None:
                session.connection.close()


@pytest.mark.parametrize("seed", range(12))
def test_no_message_is_lost_or_duplicated_when_the_network_breaks_at_random(
    broker: Broker, seed: int
) -> None:
    world = World(broker, seed)
    world.run()
    world.check()
