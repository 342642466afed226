"""Pytest plugin: the broker that a suite runs on lives in the event loop of each of its tests.

FAKEAMQP_SUITE_BROKER is a JSON object of the arguments of `Broker`, with a port. One broker serves all tests,
as a RabbitMQ does, and goes from loop to loop: it is stopped at the end of each test. The plugins
`suite_docker` and `aiomisc_pytest` tell the tests its address and make their loops.

A test fails if the broker has a bug, or if a client reached it through a socket and not through memory.
"""

import json
import os

import pytest
from suite_docker import DockerClient

from fakeamqp import Broker, Personality
from fakeamqp.runtime.event_loop.engine import LoopEngine

ARGUMENTS = json.loads(os.environ["FAKEAMQP_SUITE_BROKER"])
ARGUMENTS["personality"] = Personality(ARGUMENTS["personality"]).with_(**ARGUMENTS.pop("choices"))
BROKER = Broker(runtime="asyncio", **ARGUMENTS)
SOCKETS = []

_adopt = LoopEngine._adopt


def _noted(self, sock, *others):
    SOCKETS.append(sock)
    _adopt(self, sock, *others)


LoopEngine._adopt = _noted


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    """The suite of aio-pika waits until its container answers, before there is any loop."""
    if fixturedef.argname != "rabbitmq_container":
        return None
    container = DockerClient().run("", [])
    fixturedef.cached_result = (container, fixturedef.cache_key(request), None)
    return container


@pytest.fixture(autouse=True)
def broker_in_the_loop(event_loop):
    """Start the broker before anything else of a test, and stop it after everything else."""
    event_loop.run_until_complete(BROKER.start.aio())
    before = len(BROKER.admin.failures)
    SOCKETS.clear()
    yield
    event_loop.run_until_complete(BROKER.stop.aio())
    assert list(BROKER.admin.failures[before:]) == []
    assert SOCKETS == [], "the test did not use the broker through memory"
