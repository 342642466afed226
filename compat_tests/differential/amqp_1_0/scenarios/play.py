"""What scenarios are made of: a play, queues with messages, and the table that they are entered in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from compat_tests.differential.amqp_1_0.peers import Peer
from compat_tests.differential.amqp_1_0.stages import Stage
from compat_tests.differential.raw_client import RawClient
from compat_tests.scripted.amqp_1_0 import message


class Play:
    """One scenario on one broker.

    Args:
        stage: the broker.
        name: of the scenario; those of queues and exchanges begin with it.
        reads: by peer, how many frames each look found where the scenario was played before.
    """

    def __init__(self, stage: Stage, name: str, reads: dict[int, list[int]]) -> None:
        self.stage = stage
        self.lines: list[str] = []
        self.peers: list[Peer] = []
        self.prefix = f"d-{name}"
        self._reads = reads
        self._older: list[RawClient] = []
        self._made: list[str] = []
        self._manager: Peer | None = None

    def peer(self, name: str = "") -> Peer:
        peer = Peer(self.stage, self.lines, name, self._reads.setdefault(len(self.peers), []))
        self.peers.append(peer)
        return peer

    def older(self, **settings: Any) -> RawClient:
        """A client of 0-9-1 with channel 1."""
        client = self.stage.older(**settings)
        self._older.append(client)
        return client

    @property
    def manager(self) -> Peer:
        if self._manager is None:
            self._manager = self.peer("manager").session().managed()
        return self._manager

    def declare(self, kind: str = "classic", suffix: str = "q", **arguments: Any) -> str:
        """Declare a queue; returns its address."""
        name = f"{self.prefix}-{suffix}"
        said = {name.replace("_", "-"): value for name, value in arguments.items()}
        body = {"durable": True, "arguments": {"x-queue-type": kind, **said}}
        self.manager.ask("DELETE", f"/queues/{name}")
        status, answer = self.manager.ask("PUT", f"/queues/{name}", body)
        assert status == "201", answer
        self._made.append(f"/queues/{name}")
        return f"/queues/{name}"

    def exchange(self, kind: str, suffix: str = "x", **options: Any) -> str:
        name = f"{self.prefix}-{suffix}"
        self.manager.ask("DELETE", f"/exchanges/{name}")
        status, answer = self.manager.ask("PUT", f"/exchanges/{name}", {"type": kind, **options})
        assert status == "204", answer
        self._made.append(f"/exchanges/{name}")
        return name

    def bind(self, exchange: str, queue: str, key: str, **arguments: Any) -> None:
        body = {
            "source": exchange,
            "destination_queue": queue.removeprefix("/queues/"),
            "binding_key": key,
            "arguments": {name.replace("_", "-"): value for name, value in arguments.items()},
        }
        status, answer = self.manager.ask("POST", "/bindings", body)
        assert status == "204", answer

    def count(self, queue: str) -> None:
        """Note how many messages a queue has ready."""
        _, said = self.manager.ask("GET", queue)
        self.lines.append(f"{queue} has {said['message_count']} {said['consumer_count']}")

    def end(self) -> None:
        for path in self._made:
            self.manager.ask("DELETE", path)
        for peer in self.peers:
            peer.transport.drop()
        for client in self._older:
            client.close()


SCENARIOS: dict[str, Callable[[Play], None]] = {}
SUBJECTS: defaultdict[str, list[str]] = defaultdict(list)
"""Names of scenarios by the module that has them."""
ALONE: set[str] = set()
"""Names of scenarios during which no other is played: they change the whole broker, as an operator."""


def _enter(name: str, function: Callable[..., None], play: Callable[[Play], None]) -> None:
    SCENARIOS[name] = play
    SUBJECTS[function.__module__.rpartition(".")[2]].append(name)


def scenario(function: Callable[[Play], None]) -> Callable[[Play], None]:
    _enter(function.__name__, function, function)
    return function


def alone(function: Callable[[Play], None]) -> Callable[[Play], None]:
    """A scenario that changes the whole broker."""
    ALONE.add(function.__name__)
    return scenario(function)


def _with(function: Callable[[Play, Any], None], value: Any, play: Play) -> None:
    function(play, value)


def each(**cases: Any) -> Callable[[Callable[[Play, Any], None]], None]:
    """A scenario for each value."""

    def declared(function: Callable[[Play, Any], None]) -> None:
        for name, value in cases.items():
            _enter(f"{function.__name__}-{name}", function, partial(_with, function, value))

    return declared


KINDS = {"classic": "classic", "quorum": "quorum", "stream": "stream"}
QUEUES = {"classic": "classic", "quorum": "quorum"}


def filled(play: Play, kind: str, count: int, **arguments: Any) -> tuple[str, Peer]:
    """A queue with messages, and a peer with a session."""
    queue = play.declare(kind, **arguments)
    peer = play.peer().session()
    peer.sender(queue, 0)
    for number in range(count):
        peer.transfer(payload=message(str(number).encode()))
    peer.frames()
    return queue, peer
