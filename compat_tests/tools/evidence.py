"""What the body of a marked test shows: the brokers that it talked to, and whether it asserts anything.

A test of a rule counts in the report if its body exchanges octets with a broker and asserts something. Tests
of a codec have no broker: there the body has to run the codec. What fixtures do does not count, so that a
body that was emptied shows nothing.

Octets are seen at `Negotiation` and at the connection that takes its place, with and without sockets.
Assertions are found in the source: `assert`, `pytest.raises` and `pytest.fail`, steps of the drivers that
assert, and functions and methods of the same module, and helpers from others, that have one of these.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import fakeamqp
from fakeamqp.model.deliveries.subscription import Subscription
from fakeamqp.model.personality import PERSONALITIES, Personality
from fakeamqp.model.queues import Queue
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.base.server_connection import ServerConnection
from fakeamqp.protocols.negotiation import Negotiation

__all__ = ["Evidence", "asserts", "gathering", "mute_deliveries", "watch_connections"]

_PACKAGE = str(Path(fakeamqp.__file__).parent)
#: Choices that operators of any broker make: a broker with others is still one of its personality.
_LIMITS = ("channel_max", "frame_max", "heartbeat", "mechanisms", "largest_message")
_TESTS = Path(__file__).parents[1]
_CATALOGUE = str(_TESTS / "tools" / "conformance.py")
#: Methods of the drivers that fail where the broker does not answer as it should, besides `expect...`.
_CHECKS = frozenset(
    {
        "call",
        "perform",
        "fetch",
        "ends",
        "fails",
        "raises",
        "fail",
        "delivery",
        "transfer",
        "response",
        "refused_connection",
        "crashed",
        "declare_exchange",
    }
)


@dataclass
class Evidence:
    """What the body of one case did. Octets are those of all connections to brokers of this process."""

    received: int = 0
    """Octets that a broker received."""
    sent: int = 0
    """Octets that a broker gave to its transports."""
    personalities: set[str] = field(default_factory=set)
    """Of the brokers that received any: a name, with `*` behind it if the test changed choices."""
    ran_package: bool = False
    """Some function of the package ran, or of the catalogue: some rules are about the tests themselves."""

    @property
    def kind(self) -> str:
        """`wire`, `code` (no octets were exchanged), or nothing."""
        return "wire" if self.received or self.sent else "code" if self.ran_package else ""


_gathered: Evidence | None = None


def watch_connections() -> None:
    """Have all connections of this process noted, for the rest of its life."""
    _watch(Negotiation, lambda negotiation: negotiation._state)
    _watch(ServerConnection, lambda connection: connection.broker)


def _watch(kind: type[Any], broker: Callable[[Any], BrokerState]) -> None:
    receive, pending = kind.receive, kind.pending

    def received(self: Any, data: bytes) -> None:
        before = _gathered.received if _gathered is not None else 0
        receive(self, data)
        if _gathered is not None and data:
            # A negotiation passes on what follows the protocol header, which is counted once.
            _gathered.received = before + len(data)
            _gathered.personalities.add(_name(broker(self).personality))

    def sending(self: Any) -> list[bytes | memoryview]:
        octets: list[bytes | memoryview] = pending(self)
        if _gathered is not None and octets:
            _gathered.sent += sum(map(len, octets))
            _gathered.personalities.add(_name(broker(self).personality))
        return octets

    kind.receive = received
    kind.pending = sending


def mute_deliveries() -> None:
    """Have brokers of this process answer everything and deliver nothing, for the rest of its life.

    The model goes on as if the client had got the message. What clients get (basic.get) is an answer.
    """
    init = Subscription.__init__

    def subscribe(self: Subscription, tag: str, queue: Queue, subscriber: Any, **more: Any) -> None:
        kind = type(subscriber)
        if kind.__module__.startswith("fakeamqp.protocols."):
            kind.deliver = _swallow
        init(self, tag, queue, subscriber, **more)

    Subscription.__init__ = subscribe  # type: ignore[method-assign]


def _swallow(*_delivery: object) -> None:
    pass


@contextmanager
def gathering() -> Iterator[Evidence]:
    """Gather evidence while this is entered. An inner one takes what it encloses for itself."""
    global _gathered
    before, _gathered = _gathered, Evidence()
    evidence = _gathered
    profile = sys.getprofile()
    collecting = False

    def collects(phase: str, _details: object) -> None:
        # Finalizers of what earlier tests have left are no evidence.
        nonlocal collecting
        collecting = phase == "start"

    def called(frame: FrameType, event: str, _argument: Any) -> None:
        file = frame.f_code.co_filename
        # What the codecs compile is in files called "<encode of QueueDeclare>".
        compiled = file[:1] == "<" and " of " in file
        if event == "call" and not collecting and (compiled or file.startswith((_PACKAGE, _CATALOGUE))):
            evidence.ran_package = True
            sys.setprofile(profile)

    if profile is None:
        gc.callbacks.append(collects)
        sys.setprofile(called)
    try:
        yield evidence
    finally:
        if profile is None:
            sys.setprofile(None)
            gc.callbacks.remove(collects)
        _gathered = before


def _name(personality: Personality) -> str:
    name = personality.name
    known = PERSONALITIES.get(name)
    if known is None or known is personality:
        return name if known else f"{name}*"
    limits = {each: getattr(known, each) for each in _LIMITS}
    return name if replace(personality, **limits) == known else f"{name}*"


# --- assertions ----------------------------------------------------------------------------------------


def asserts(file: Path, name: str) -> bool:
    """Whether a function of this file asserts anything: see the top of this module."""
    return name in _asserting(file)


@cache
def _asserting(file: Path) -> frozenset[str]:
    """The functions and methods of a file that assert, by themselves or through others of the file."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = _imported(nodes)
    found |= {function.name for function in functions if _has_assertion(function)}
    calls = {function.name: _used(function) for function in functions if function.name not in found}
    while more := {name for name, used in calls.items() if used & found} - found:
        found |= more
    return frozenset(found)


def _imported(nodes: list[ast.AST]) -> set[str]:
    """The functions that a file has from other modules of the tests, and that assert."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("compat_tests."):
            file = _TESTS.joinpath(*str(node.module).split(".")[1:]).with_suffix(".py")
            if file.exists() and "driver" not in file.stem:
                found |= {name.name for name in node.names} & _asserting(file)
    return found


def _has_assertion(function: ast.AST) -> bool:
    return any(isinstance(node, ast.Assert) for node in ast.walk(function)) or any(
        name.startswith("expect") or name in _CHECKS for name in _used(function)
    )


def _used(function: ast.AST) -> set[str]:
    """The names that a function calls, or uses as an attribute."""
    used = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            used.add(node.func.id)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
    return used
