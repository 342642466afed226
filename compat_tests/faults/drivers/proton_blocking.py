"""proton's BlockingConnection for AMQP 1.0. It never reconnects by itself."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from compat_tests.faults.drivers.blocking import TICK, Direct
from compat_tests.faults.observation import InVain, Observation, trouble
from compat_tests.faults.scenario import QUEUE, Stage

TITLE = "proton BlockingConnection"
_ADDRESS = f"/queues/{QUEUE}"


def run(stage: Stage) -> Observation:
    from proton.utils import BlockingConnection

    seen = Observation()
    try:
        connection = BlockingConnection(
            f"amqp://guest:guest@{stage.host}:{stage.port}", timeout=stage.patience
        )
    except Exception as error:
        seen.troubles.append(trouble("connecting", error))
        return seen
    try:
        stage.reached("connected")
        _Work(stage, seen, connection).all()
    finally:
        _close(connection, seen)
    return seen


class _Work(Direct):
    def __init__(self, stage: Stage, seen: Observation, connection: Any) -> None:
        super().__init__(stage)
        self.seen, self.connection = seen, connection
        self.sender: Any = None
        self.receiver: Any = None

    def hopeless(self) -> bool:
        from proton import Endpoint

        ended = self.sender.link.state & Endpoint.REMOTE_CLOSED
        return bool(ended or self.connection.disconnected or self.seen.gave_up)

    def declare(self) -> None:
        """The queue is there: a link to it is made."""
        self.sender = self.connection.create_sender(_ADDRESS)

    def publish(self, body: str) -> None:
        from proton import Message, Timeout

        try:
            self.sender.send(Message(body=body.encode(), inferred=True, durable=True))
        except Timeout:
            raise InVain from None

    def subscribe(self) -> None:
        self.receiver = self.connection.create_receiver(_ADDRESS, credit=10)

    def wait(self, times: float) -> None:
        from proton import Timeout

        for _ in range(int(self.stage.patience * times / TICK)):
            with suppress(Timeout):
                message = self.receiver.receive(timeout=TICK)
                self.seen.take(bytes(message.body), not message.first_acquirer)
                self.receiver.accept()
            if self.stage.over():
                return
        raise InVain


def _close(connection: Any, seen: Observation) -> None:
    """Close, by force where the broker does not answer."""
    from proton import Timeout

    try:
        connection.close()
    except Timeout:
        seen.troubles.append(trouble("closing", InVain()))
    except Exception as error:
        seen.troubles.append(trouble("closing", error))
    finally:
        with suppress(Exception):
            connection.run()
