"""Real clients on the broker. Every test is followed by a look for what it has left behind."""

from __future__ import annotations

import gc
import os
import threading
from collections import Counter
from collections.abc import Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from compat_tests.clients.amqp_0_10.client import Connection, Session, connect
from compat_tests.clients.qpid.python27 import Python27, Unavailable, client
from compat_tests.clients.qpid.remote import Remote
from compat_tests.clients.reach import Reach
from fakeamqp import Broker

SECONDS = 20


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After the test no thread of it runs and no socket of it is open, the broker's included."""
    threads, sockets = set(threading.enumerate()), open_sockets()
    yield
    left = set(threading.enumerate()) - threads
    for thread in left:
        thread.join(SECONDS)  # Some clients tell their threads to end without waiting for it.
    assert not [thread for thread in left if thread.is_alive()]
    gc.collect()  # What is forgotten open raises ResourceWarning here.
    assert open_sockets() - sockets == Counter()


def open_sockets() -> Counter[str]:
    """This process's sockets; nothing where the system cannot tell."""
    found: Counter[str] = Counter()
    if not os.path.isdir("/proc/self/fd"):
        return found
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue  # The listing's own descriptor.
        if target.startswith("socket:"):
            found[target] += 1
    return found


@pytest.fixture
def broker(nothing_is_left: None) -> Iterator[Broker]:
    """A broker on TCP."""
    with Broker(seed=1) as running:
        yield running
        assert running.admin.failures == ()


@pytest.fixture(params=["tcp", "tls", "intercepted"])
def reach(request: pytest.FixtureRequest, nothing_is_left: None) -> Iterator[Reach]:
    """A broker, and how a client gets to it."""
    with Broker(seed=1, tls=request.param == "tls") as running:
        if request.param == "tls":
            yield Reach(running, running.host, running.port, running.tls.client_context, running.tls.ca_file)
        elif request.param == "intercepted":
            with running.intercept("rabbit.prod:5672"):
                yield Reach(running, "rabbit.prod", 5672)
        else:
            yield Reach(running, running.host, running.port)
        assert running.admin.failures == ()


@pytest.fixture(scope="session")
def python27() -> Python27:
    """Apache's client for AMQP 0-10, and the Python that it needs."""
    try:
        return client()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def connection(broker: Broker) -> Iterator[Connection]:
    """A connection of our own client for AMQP 0-10, over TCP."""
    with connect(broker) as opened:
        yield opened


@pytest.fixture
def session(connection: Connection) -> Session:
    """A session on that connection."""
    return connection.session(b"session")


@pytest.fixture
def channel(broker: Broker) -> Iterator[BlockingChannel]:
    """A channel of pika's, with confirms."""
    parameters = pika.URLParameters(broker.url)
    parameters.socket_timeout = parameters.stack_timeout = parameters.blocked_connection_timeout = 20
    with pika.BlockingConnection(parameters) as connection:
        opened = connection.channel()
        opened.confirm_delivery()
        yield opened


@pytest.fixture
def remote(python27: Python27, nothing_is_left: None) -> Iterator[Remote]:
    """A process with that client."""
    with Remote(python27) as running:
        yield running
