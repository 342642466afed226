"""Where scenarios are played: a broker without sockets, or a node."""

from __future__ import annotations

import time
from typing import Any

from compat_tests.differential.accounts import ACCOUNTS
from compat_tests.differential.operators import BrokerOperator, NodeOperator
from compat_tests.differential.rabbitmq_node import RabbitMQNode
from compat_tests.differential.raw_client import Address, RawClient
from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.scripted.sockets import SocketConnection, SocketServer
from fakeamqp import Broker
from fakeamqp.model.personality import PERSONALITIES

QUIET = 0.3
"""Seconds without a frame after which a node has said what it had to say."""
_BRIEF = 0.04
"""Seconds to wait for more than what is expected."""


class _BrokerServer(Server):
    """The broker of a personality, with the accounts of the nodes."""

    def __init__(self, personality: str) -> None:
        self.broker = Broker(personality=PERSONALITIES[personality], clock="virtual", definitions=ACCOUNTS)
        self.state = self.broker._state
        clock: Any = self.state.clock
        clock.strict = True
        self.clock = clock

    def advance(self, seconds: float) -> _BrokerServer:
        clock: Any = self.clock
        clock.step_to(clock.now() + seconds)
        return self


class Stage:
    """One broker. What it says in reply to a scenario on a node is awaited by what it said on another stage.

    Args:
        server: a broker without sockets, or the address of a node.
        operator: what an operator can do; None where the node was started elsewhere.
        patience: how much longer than usual to wait.
    """

    def __init__(self, server: Any, operator: Any = None, patience: float = 1.0) -> None:
        self.server = server
        self.operator = operator
        self.patience = patience
        self.live = isinstance(server, SocketServer)

    @classmethod
    def of_personality(cls, name: str) -> Stage:
        server = _BrokerServer(name)
        return cls(server, BrokerOperator(server.broker))

    @classmethod
    def of_node(cls, port: int, node: RabbitMQNode | None = None, patience: float = 1.0) -> Stage:
        operator = None if node is None else NodeOperator(node)
        return cls(SocketServer("127.0.0.1", port, patience=5.0 * patience), operator, patience)

    def older(self, **settings: Any) -> RawClient:
        """A client of 0-9-1."""
        if self.live:
            return RawClient(Address(self.server.host, self.server.port, self.patience), **settings)
        return RawClient(Address("", 0, server=self.server), **settings)

    def pass_time(self, seconds: float) -> None:
        """Let time pass: the one place where a node has to be waited for."""
        if self.live:
            time.sleep(seconds)
        else:
            self.server.advance(seconds)

    def wait(self, connection: Any, *, expected: bool | None) -> bool:
        """Whether more comes. `expected` is None where that is not known."""
        if not isinstance(connection, SocketConnection):
            self.server.advance(0)
            return False
        seconds = _BRIEF if expected is False else QUIET
        return connection.wait(seconds * self.patience)
