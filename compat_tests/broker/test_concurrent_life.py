"""Start, stop and restart from several threads at once."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable

import pytest

from fakeamqp import Broker, BrokerError

pytestmark = pytest.mark.threads_only


@pytest.mark.parametrize("management", [False, True])
def test_starts_stops_and_restarts_of_several_threads_are_serialized(management: bool):
    before = set(threading.enumerate())
    broker = Broker(management=management).start()
    problems: list[BaseException] = []
    barrier = threading.Barrier(6)

    def act(seed: int) -> None:
        chosen = random.Random(seed)
        barrier.wait(60)
        for _ in range(15):
            action: Callable[[], object] = chosen.choice((broker.start, broker.stop, broker.restart))
            try:
                action()
            except BrokerError:  # It is stopped, so it cannot restart.
                assert action == broker.restart
            except BaseException as problem:
                problems.append(problem)

    threads = [threading.Thread(target=act, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert problems == []
    broker.stop()
    assert not broker.running
    assert set(threading.enumerate()) <= before
    socket.create_server(("127.0.0.1", broker.port)).close()


def test_stop_while_holding_the_lock_does_not_deadlock_with_another_stop():
    broker = Broker().start()
    with broker._engine:
        other = threading.Thread(target=broker.stop)
        other.start()
        broker.stop()
    other.join(60)
    assert not other.is_alive()
    assert not broker.running
