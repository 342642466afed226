"""What tests of 0-9-1 need beside a client, which no node of RabbitMQ has, or not every one.

`@pytest.mark.needs("virtual time", "restart")` says so. `NEEDS` has the words; a test that needs the
behaviour of one personality says `personality rabbitmq-4.3`, or `personality since rabbitmq-4.0`. A case with
a parameter such as "rabbitmq-4.0", and one with the fixture `spec`, need that personality without a mark.

Theory of operation. On a node a test that needs something is skipped, with these words. So that the marks
stay true, it runs on a broker of this process all the same: `WatchedServer` notes what it asks for. A mark
that names something else fails it. A test without a mark that asks a node for something fails: `Missing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import pytest
from typing_extensions import Self

from compat_tests.scripted.amqp_0_9_1 import ManualClock, Server
from fakeamqp.connection import Connection, PeerAddress
from fakeamqp.errors import near_match
from fakeamqp.model.personality import PERSONALITIES, Personality
from fakeamqp.protocols.negotiation import accept

__all__ = [
    "NEEDS",
    "Missing",
    "WatchedServer",
    "need_of_personality",
    "need_of_state",
    "needs_of",
    "problems",
    "stands_for_all",
    "unmet",
    "untrue",
]

#: What a test may need, and when it does.
NEEDS = {
    "virtual time": "it moves the clock of the broker",
    "inspection": "it looks into the broker, or reaches into it",
    "settings": "it has a broker with settings, users, virtual hosts or policies of its own",
    "restart": "it restarts the broker",
    "addresses of peers": "it says from where a client connects",
    "plugin for delayed messages": "it has exchanges of the type x-delayed-message",
    "own broker": "it makes its broker or its transport, or changes or measures the code of brokers",
    "several personalities": "it has brokers of more than one",
}
_PERSONALITY = "personality "
_OF_CHOICES = "of choices"
_SINCE = "since "
#: What the users of some fixtures need.
_FIXTURES = {
    "spec": "personality spec",
    "rabbitmq_4_2": "personality rabbitmq-4.2",
    "caplog": "inspection",
    "monkeypatch": "own broker",
}
#: What is asked of a state for another purpose than to look at it.
_OF_STATE = {
    "clock": "virtual time",
    "timers": "virtual time",
    "restart": "restart",
    "access": "settings",
    "add_virtual_host": "settings",
    "block": "settings",
    "blocked_reason": "settings",
    "memory": "settings",
    "operations": "settings",
    "unblock": "settings",
}


class Missing(pytest.fail.Exception):
    """A test without the mark asked a node for what it has not."""

    def __init__(self, need: str) -> None:
        super().__init__(
            f'the test asks for what a node has not: mark it with @pytest.mark.needs("{need}")', pytrace=True
        )


def need_of_personality(name: str | Personality) -> str:
    """The need of a test for brokers of this personality."""
    if isinstance(name, Personality):
        name = name.name if name == PERSONALITIES.get(name.name) else _OF_CHOICES
    return _PERSONALITY + name


def need_of_state(attribute: str) -> str:
    """The need of a test that uses this attribute of the state of a broker."""
    return _OF_STATE.get(attribute, "inspection")


def problems(item: pytest.Item) -> Iterator[str]:
    """What is wrong with the marks of a test."""
    for need in _marked(item):
        names = [*PERSONALITIES, _OF_CHOICES, *(_SINCE + name for name in PERSONALITIES)]
        known = [*NEEDS, *(_PERSONALITY + name for name in names)]
        if need not in known:
            yield f"{item.nodeid}: needs({need!r}) is not known{near_match(need, known)}"


def _marked(item: pytest.Item) -> list[str]:
    return [need for mark in item.iter_markers("needs") for need in mark.args]


def needs_of(item: pytest.Item) -> list[str]:
    """All that a test needs, by its marks, its fixtures and its parameters."""
    needs = _marked(item)
    fixtures = getattr(item, "fixturenames", ())
    needs += [need for fixture, need in _FIXTURES.items() if fixture in fixtures]
    params = getattr(getattr(item, "callspec", None), "params", {})
    for parameter, value in params.items():
        if isinstance(value, str) and f"rabbitmq-{value}" in PERSONALITIES:
            value = f"rabbitmq-{value}"
        named = isinstance(value, Personality) or (isinstance(value, str) and value in PERSONALITIES)
        if named and not stands_for_all(item, parameter):
            needs.append(need_of_personality(value))
    return list(dict.fromkeys(needs))


def stands_for_all(item: pytest.Item, fixture: str) -> bool:
    """Whether a parameter is that of a fixture of all tests, for which a node of any version will do."""
    found = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}).get(fixture)
    return found is not None and found[-1].func.__module__.endswith("conftest")


def unmet(item: pytest.Item, name: str) -> list[str]:
    """What a test needs that a node with this personality has not."""
    versions = list(PERSONALITIES)
    until = versions[: versions.index(name) + 1] if name in versions else []
    met = {_PERSONALITY + name, *(_PERSONALITY + _SINCE + each for each in until)}
    return [need for need in needs_of(item) if need not in met]


def untrue(item: pytest.Item, unmet: Iterable[str]) -> list[str]:
    """What a test that was watched, and did not fail, is said to need and does not."""
    asked = WatchedServer.asked | {"own broker", "plugin for delayed messages"}
    asked |= {need for fixture, need in _FIXTURES.items() if fixture in getattr(item, "fixturenames", ())}
    if len([need for need in asked if need.startswith(_PERSONALITY)]) > 1:
        asked.add("several personalities")
    if WatchedServer.default != "rabbitmq-4.3" and len(needs_of(item)) > len(list(unmet)):
        return []  # A case of this version, while the mark of the function may be about others.
    needed = not WatchedServer.used or not asked.isdisjoint(unmet)
    return [] if needed else list(unmet)


class WatchedServer(Server):
    """A broker of this process that notes what a test needs."""

    default: ClassVar[str] = "rabbitmq-4.3"
    """The personality of the node for whose sake the test is watched."""
    asked: ClassVar[set[str]] = set()
    """What the test asked for."""
    used: ClassVar[bool] = False
    """A client of the test has sent something."""

    @classmethod
    def watch(cls, name: str) -> None:
        """Watch another test, for a node of this personality."""
        cls.default, cls.used = name, False
        cls.asked.clear()

    def __init__(self, name: str | Personality | None = None, *, tickets: bool = True, **more: Any) -> None:
        if name is not None:
            self.asked.add(need_of_personality(name))
        if more.keys() - {"protocol"}:
            self.asked.add("settings")
        super().__init__(name or self.default, tickets=tickets, **more)
        self._watched, self.state = self.state, _WatchedState(self.state)  # type: ignore[assignment]

    @property
    def clock(self) -> ManualClock:  # type: ignore[override]
        self.asked.add("virtual time")
        return self._clock

    @clock.setter
    def clock(self, clock: ManualClock) -> None:
        self._clock = clock

    def varied(self, **choices: Any) -> Server:
        if not choices:
            return Server(protocol=self.protocol)
        self.asked.add("personality of choices")
        return super().varied(**choices)

    def advance(self, seconds: float) -> Self:
        self.asked.add("virtual time")
        return super().advance(seconds)

    def restart(self, *, crash: bool = False) -> Self:
        self.asked.add("restart")
        return super().restart(crash=crash)

    def accept(self, peer: PeerAddress, use: Callable[[Connection], None]) -> Any:
        def watched(connection: Connection) -> None:
            use(_WatchedConnection(connection))  # type: ignore[arg-type]

        return _WatchedConnection(accept(self._watched, peer, watched))

    def connect(self, **peer: Any) -> Any:
        if peer:
            self.asked.add("addresses of peers")
        return super().connect(**peer)


class _Watched:
    """Something of a broker, with what it may be asked for without a mark."""

    plain: frozenset[str]

    def __init__(self, real: Any) -> None:
        object.__setattr__(self, "_real", real)

    def __getattr__(self, name: str) -> Any:
        self._note(name)
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._note(name)
        setattr(self._real, name, value)

    def _note(self, name: str) -> None:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return self._real is (other._real if isinstance(other, _Watched) else other)

    def __hash__(self) -> int:
        return hash(self._real)


class _WatchedState(_Watched):
    def _note(self, name: str) -> None:
        if name != "personality":
            WatchedServer.asked.add(need_of_state(name))


class _WatchedConnection(_Watched):
    def _note(self, name: str) -> None:
        if name == "receive":
            WatchedServer.used = True
        elif name not in ("pending", "sent", "receive_eof", "finished", "aborted", "personality"):
            WatchedServer.asked.add("inspection")
