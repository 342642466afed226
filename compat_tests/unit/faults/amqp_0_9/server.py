"""A broker with faults and without sockets, for raw clients of 0-9."""

from __future__ import annotations

from typing import Any

from compat_tests.scripted.amqp_0_9 import Server
from compat_tests.scripted.fault_context import FaultContext
from compat_tests.scripted.requesting import Requester
from fakeamqp.faults import Faults
from fakeamqp.faults.port import BrokerContext
from fakeamqp.model.personality import Personality
from fakeamqp.trace import ConnectionEvent, Recorder

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

    def requester(self, queue: str = "q", *, reserved: bool = True) -> Requester:
        """A client that has declared a queue and goes on by requests."""
        client = self.client()
        client.declare(queue)
        return Requester(client, reserved=reserved)

    def bodies(self, queue: str = "q") -> list[bytes]:
        """What is ready in a queue."""
        return [queued.message.body for queued in self.vhost.queues[queue].ready]
