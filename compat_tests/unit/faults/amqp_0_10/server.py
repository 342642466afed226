"""A broker with faults and without sockets, for raw clients of 0-10."""

from __future__ import annotations

from typing import Any

from compat_tests.scripted.amqp_0_10 import Server
from compat_tests.scripted.fault_context import FaultContext
from fakeamqp.faults import Faults
from fakeamqp.faults.port import BrokerContext
from fakeamqp.model.personality import Personality
from fakeamqp.trace import ConnectionEvent, FrameEvent, Recorder

__all__ = ["FaultServer"]


class FaultServer(Server):
    """A `Server` with `faults`; what goes over the wire is recorded."""

    def __init__(self, name: str | Personality = "rabbitmq-4.2", **state: Any) -> None:
        super().__init__(name, **state)
        self.recorder = self.next_tap = Recorder(self.clock.now)
        self.state.tap = self.recorder
        self.restarts: list[bool] = []
        context: BrokerContext = FaultContext(self)
        self.faults = Faults(context)

    def restart(self, *, crash: bool = False, durable: bool = True) -> None:
        self.restarts.append(crash)
        super().restart(crash=crash)

    def settle(self) -> None:
        """Have done what is to be done as soon as possible."""
        self.advance(0)

    @property
    def said(self) -> list[str]:
        """What the trace tells of faults."""
        return [
            event.detail
            for event in self.recorder.trace().events
            if isinstance(event, ConnectionEvent) and event.event == "fault"
        ]

    def frames(self, direction: str) -> list[str]:
        """The names of the frames that the trace has seen, content left out."""
        return [
            event.name
            for event in self.recorder.trace().events
            if isinstance(event, FrameEvent) and event.direction == direction and event.part == "method"
        ]

    def bodies(self, queue: str = "q") -> list[bytes]:
        """What is ready in a queue."""
        return [queued.message.body for queued in self.vhost.queues[queue].ready]
