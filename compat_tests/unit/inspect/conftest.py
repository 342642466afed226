from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.state import BrokerState

T = TypeVar("T")


class Outside:
    """Reads a broker as a test's thread does. While it waits, it runs the steps it was given."""

    def __init__(self, server: Server, *steps: Callable[[], object]) -> None:
        self.server = server
        self.steps = list(steps)
        self.timeout: float | None = None

    def read(self, question: Callable[[BrokerState], T]) -> T:
        return question(self.server.state)

    change = read

    def wait_for(
        self, predicate: Callable[[BrokerState], object], timeout: float, every: float | None = None
    ) -> bool:
        self.timeout = timeout
        while not predicate(self.server.state):
            if not self.steps:
                return False
            self.steps.pop(0)()
        return True

    async def wait_for_async(
        self, predicate: Callable[[BrokerState], object], timeout: float, every: float | None = None
    ) -> bool:
        return self.wait_for(predicate, timeout, every)


@pytest.fixture
def server() -> Server:
    return Server(history=100)


@pytest.fixture
def client(server: Server) -> Client:
    return server.client()


@pytest.fixture
def outside(server: Server) -> Callable[..., Outside]:
    return lambda *steps: Outside(server, *steps)
