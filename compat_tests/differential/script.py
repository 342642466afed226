"""How a case is written: steps that one client or several take, and what is told of them.

A name that starts with `@` is the scene's own: it is sent with a prefix nobody else has, and told without it.
A name that starts with `$` is what `keep` found under that name. `last` tells what the last step brought
about, `each` tells it of every step that is not in brackets.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from compat_tests.differential.codec import Tagged
from compat_tests.differential.raw_client import Address, HandshakeFailed, RawClient

__all__ = [
    "CASES",
    "CONFIRMS",
    "RECOVER",
    "REOPENED",
    "STUMBLED",
    "TX",
    "Call",
    "Case",
    "Pause",
    "Scene",
    "Setting",
    "Step",
    "Tagged",
    "ack",
    "arrivals",
    "begin",
    "bind",
    "call",
    "case",
    "connect",
    "consume",
    "contents",
    "drop",
    "each",
    "exchange",
    "filled",
    "finish",
    "get",
    "got_in_frames",
    "keep",
    "last",
    "nack",
    "named",
    "one_by_one",
    "open_channel",
    "operate",
    "pause",
    "publish",
    "queue",
    "queue_with",
    "raw",
    "reject",
    "run",
    "shared",
    "unbind",
    "until",
]

STUMBLED = "the case stumbled:"


def named(value: Any, prefix: str, kept: Mapping[str, str] = {}) -> Any:
    """A value in which names have the prefix of a scene in place of `@`, and what was kept is in place."""
    if isinstance(value, str):
        if value.startswith("$"):
            return kept[value[1:]]
        return prefix + value[1:] if value.startswith("@") else value
    if isinstance(value, dict):
        return {key: named(item, prefix, kept) for key, item in value.items()}
    if isinstance(value, list):
        return [named(item, prefix, kept) for item in value]
    if isinstance(value, Tagged) and value.tag in "SxAF":
        return Tagged(value.tag, named(value.value, prefix, kept))
    return value


class Scene:
    """One case on one broker: its clients, its names, and what its steps bring about."""

    def __init__(self, address: Address, prefix: str) -> None:
        self.address = address
        self.prefix = prefix
        self.kept: dict[str, str] = {}
        self._clients: dict[str, RawClient] = {}

    def client(self, name: str = "a", **how: Any) -> RawClient:
        """The client of this name; it connects when it is first asked for, in the way that is said then."""
        if name not in self._clients:
            self._clients[name] = RawClient(self.address, **how)
        return self._clients[name]

    @property
    def a(self) -> RawClient:
        """The client that takes the steps unless another is named."""
        return self.client("a")

    @property
    def b(self) -> RawClient:
        """Another client."""
        return self.client("b")

    def named(self, value: Any) -> Any:
        """A value with the names in it made this scene's own."""
        return named(value, self.prefix, self.kept)

    def do(self, method: str, ch: int = 1, on: str = "a", settle: float = 0.0, **arguments: Any) -> list[str]:
        """Have a client call a method; see `RawClient.do`."""
        return self.client(on).do(ch, method, settle, **self.named(arguments))

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def told(self, outcome: Iterable[str]) -> str:
        """What happened, without what differs from run to run."""
        text = " ; ".join(outcome) or "-"
        text = text.replace(self.prefix, "")
        text = re.sub(r"amq\.(gen|ctag)-[A-Za-z0-9_-]{22}", r"amq.\1-~22", text)
        text = re.sub(r"(amq\.rabbitmq\.reply-to\.)[A-Za-z0-9_+/=-]{8,}(\.[A-Za-z0-9_+/=-]+)?", r"\1~", text)
        text = re.sub(r"cluster_name=S:'[^']*'", "cluster_name=S:~", text)
        text = re.sub(r"127\.0\.0\.1:\d+ -> 127\.0\.0\.1:\d+", "client -> node", text)
        text = re.sub(r"T:\d{9,}", "T:~", text)
        text = re.sub(r"fakeamqp[-\w]*@localhost", "node@localhost", text)
        return re.sub(r"[\0-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", text)


Step: TypeAlias = Callable[[Scene], list[str]]


class Setting(NamedTuple):
    """A setting of the whole broker: what the operator does to set it, and the value; "" is the usual one."""

    deed: str
    value: str

    @contextlib.contextmanager
    def applied(self, address: Address) -> Iterator[None]:
        """While the block lasts the broker has this setting."""
        assert address.operator is not None
        deed = getattr(address.operator, self.deed)
        deed(self.value)
        try:
            yield
        finally:
            deed("")


@dataclass(frozen=True)
class Case:
    """One thing to try on both brokers."""

    id: str
    steps: Step
    alone: bool = False
    """Not while others are run: it does something to the whole broker."""
    setting: Setting | None = None
    """The setting of the broker that it is about; cases with the same one are run together."""
    before: Step | None = None
    """What comes before a restart of the broker, and `steps` after it; such cases are run together."""

    def __str__(self) -> str:
        return self.id


CASES: dict[str, Case] = {}


def case(
    case_id: str, *, alone: bool = False, setting: Setting | None = None, before: Step | None = None
) -> Callable[[Step], Step]:
    """A case that is a function of its scene."""

    def add(steps: Step) -> Step:
        assert case_id not in CASES, f"there are two cases {case_id}"
        CASES[case_id] = Case(case_id, steps, alone, setting, before)
        return steps

    return add


def last(case_id: str, *steps: Step) -> None:
    """A case of which the outcome of the last step is told."""

    def play(scene: Scene) -> list[str]:
        return [step(scene) for step in steps][-1]

    case(case_id)(play)


def each(
    case_id: str, *steps: Step | Sequence[Step], alone: bool = False, setting: Setting | None = None
) -> None:
    """A case of which the outcome of every step is told, but for those in brackets, which prepare."""

    def play(scene: Scene) -> list[str]:
        told = []
        for step in steps:
            if isinstance(step, Sequence):
                for preparation in step:
                    preparation(scene)
            else:
                told.append(" ; ".join(step(scene)) or "-")
        return [" / ".join(told)]

    case(case_id, alone=alone, setting=setting)(play)


def run(case: Case, address: Address) -> str:
    """Play a case on a broker, by itself, and put into words what happened."""
    with contextlib.nullcontext() if case.setting is None else case.setting.applied(address):
        scene, failure = begin(case, address)
        if case.before is not None:
            assert address.operator is not None
            address.operator.restart()
        return finish(case, scene, failure)


def begin(case: Case, address: Address) -> tuple[Scene, str]:
    """Play what comes before the restart, if there is one; the text is what went wrong."""
    prefix = f"{secrets.token_hex(4)}.{re.sub('[^A-Za-z0-9_-]', '_', case.id)}."
    scene = Scene(address, prefix)
    return scene, "" if case.before is None else _played(scene, case.before, telling=False)


def finish(case: Case, scene: Scene, failure: str = "") -> str:
    """Play the rest, and put into words what happened."""
    try:
        return failure or _played(scene, case.steps)
    finally:
        scene.close()


def _played(scene: Scene, steps: Step, *, telling: bool = True) -> str:
    try:
        outcome = steps(scene)
    except HandshakeFailed as refusal:
        return scene.told([f"handshake fails: {refusal}"])
    except (LookupError, OSError, ValueError) as surprise:
        # Something came that the case was not written for: a difference, or an error in the case.
        return scene.told([f"{STUMBLED} {surprise!r}"])
    return scene.told(outcome) if telling else ""


# --- steps -------------------------------------------------------------------------------------------------
# All of them take ch= (the channel), on= (the client) and settle= (seconds to wait for what may still come).


@dataclass(frozen=True)
class Call:
    """A step that calls a method."""

    method: str
    arguments: dict[str, Any]

    def __call__(self, scene: Scene) -> list[str]:
        return scene.do(self.method, **self.arguments)

    def __repr__(self) -> str:
        return f"call({self.method!r}{''.join(f', {key}={each!r}' for key, each in self.arguments.items())})"

    def with_(self, **arguments: Any) -> Call:
        """The same with other arguments."""
        return Call(self.method, {**self.arguments, **arguments})

    def by(self, client: str) -> Call:
        """The same, called by another client."""
        return self.with_(on=client)


@dataclass(frozen=True)
class Pause:
    """A step in which time passes."""

    seconds: float
    client: str = "a"

    def __call__(self, scene: Scene) -> list[str]:
        return scene.client(self.client).quiet(self.seconds)

    def __repr__(self) -> str:
        return f"pause({self.seconds!r})"


def call(method: str, **arguments: Any) -> Call:
    """Call any method; `publish` is basic.publish with its content."""
    return Call(method, arguments)


def open_channel(number: int) -> Call:
    return call("channel.open", ch=number)


def queue(name: str = "@q", **arguments: Any) -> Call:
    return call("queue.declare", queue=name, **arguments)


def queue_with(name: str = "@q", **arguments: Any) -> Call:
    """Declare a queue with arguments; x_max_length is x-max-length."""
    return queue(name, arguments={key.replace("_", "-"): value for key, value in arguments.items()})


def exchange(name: str = "@x", type: str = "direct", **arguments: Any) -> Call:
    return call("exchange.declare", exchange=name, type=type, **arguments)


def bind(queue: str = "@q", exchange: str = "@x", routing_key: str = "", **arguments: Any) -> Call:
    return call("queue.bind", queue=queue, exchange=exchange, routing_key=routing_key, **arguments)


def unbind(queue: str = "@q", exchange: str = "@x", routing_key: str = "", **arguments: Any) -> Call:
    return call("queue.unbind", queue=queue, exchange=exchange, routing_key=routing_key, **arguments)


def publish(key: str = "@q", body: str = "m", exchange: str = "", **arguments: Any) -> Call:
    return call("publish", routing_key=key, exchange=exchange, body=body, **arguments)


def consume(queue: str = "@q", tag: str = "c", **arguments: Any) -> Call:
    return call("basic.consume", queue=queue, consumer_tag=tag, **arguments)


def get(queue: str = "@q", no_ack: int = 1, **arguments: Any) -> Call:
    return call("basic.get", queue=queue, no_ack=no_ack, **arguments)


def ack(tag: int, **arguments: Any) -> Call:
    return call("basic.ack", delivery_tag=tag, **arguments)


def nack(tag: int, **arguments: Any) -> Call:
    return call("basic.nack", delivery_tag=tag, **arguments)


def reject(tag: int, requeue: int = 0, **arguments: Any) -> Call:
    return call("basic.reject", delivery_tag=tag, requeue=requeue, **arguments)


def arrivals(count: int = 1, on: str = "a") -> Step:
    """What comes next, so many times."""

    def take(scene: Scene) -> list[str]:
        came = []
        for _ in range(count):
            event = scene.client(on).next(3.0)
            came.append("silence" if event is None else event.text)
        return came

    return take


def pause(seconds: float = 0.3, on: str = "a") -> Pause:
    """What comes within some seconds."""
    return Pause(seconds, on)


def until(wanted: str, step: Step, tries: int = 60) -> Step:
    """Take a step again and again, 50 ms apart, until its outcome contains what is wanted."""

    def repeat(scene: Scene) -> list[str]:
        outcome = step(scene)
        for _ in range(tries):
            if any(wanted in text for text in outcome):
                break
            scene.a.quiet(0.05)
            outcome = step(scene)
        return outcome

    return repeat


def keep(name: str, pattern: str, step: Step) -> Step:
    """Take a step and keep what the group in `pattern` finds in its outcome, to be used as `$name`."""

    def take(scene: Scene) -> list[str]:
        outcome = step(scene)
        found = re.search(pattern, " ; ".join(outcome))
        scene.kept[name] = found[1] if found else ""
        return outcome

    return take


def connect(client: str, **how: Any) -> Step:
    """Connect a client in some way, such as to another virtual host; a refusal is told."""

    def begin(scene: Scene) -> list[str]:
        try:
            scene.client(client, **scene.named(how))
        except HandshakeFailed as refusal:
            return [f"refused: {refusal}"]
        return ["connected"]

    return begin


def operate(deed: str, *arguments: str) -> Step:
    """Have the operator of the broker do something."""

    def do(scene: Scene) -> list[str]:
        assert scene.address.operator is not None
        getattr(scene.address.operator, deed)(*scene.named(list(arguments)))
        return []

    return do


def drop(client: str) -> Step:
    """End the socket of a client without a word."""

    def end(scene: Scene) -> list[str]:
        scene.client(client).close()
        return []

    return end


def raw(*octets: bytes, seconds: float = 2.0, **how: Any) -> Step:
    """Send bytes that may be no AMQP, over a client that has connected so, and tell all up to the end."""

    def send(scene: Scene) -> list[str]:
        client = scene.client("a", **how)
        client.send_bytes(b"".join(octets))
        return client.drain(seconds)

    return send


def got_in_frames(on: str = "a") -> Step:
    """Get a message of @q: the frames in which it comes, as type:size."""

    def take(scene: Scene) -> list[str]:
        client = scene.client(on)
        client.tell(1, "basic.get", queue=scene.named("@q"), no_ack=1)
        octets, sizes = client.octets(), []
        while octets:
            kind, _, length = struct.unpack_from(">BHI", octets)
            sizes.append("1:~" if kind == 1 else f"{kind}:{length}")
            octets = octets[8 + length :]
        return [" ".join(sizes)]

    return take


def contents(name: str = "@q") -> Step:
    """Get all that a queue holds: the bodies in order, with an r behind those that are redelivered."""

    def take_all(scene: Scene) -> list[str]:
        told = []
        while found := re.search(r"^basic.get-ok.*redelivered=(\d).*'(.*)'$", get(name)(scene)[0]):
            told.append(found[2] + "r" * int(found[1]))
        return [" ".join(told)]

    return take_all


def one_by_one(*bodies: str, settle: float = 0.3) -> list[Step]:
    """A publish to @q of each body, apart, so that it is delivered before the next."""
    return [publish(body=body, settle=settle) for body in bodies]


def shared(count: int = 1, **where: Any) -> Call:
    """A prefetch limit of the whole channel."""
    return call("basic.qos", prefetch_count=count, **{"global": 1}, **where)


CONFIRMS = call("confirm.select")
TX = call("tx.select")
RECOVER = call("basic.recover", requeue=True)
REOPENED: list[Step] = [call("channel.close"), call("channel.open")]


def filled(count: int) -> list[Step]:
    """@q with messages 1, 2, …"""
    return [queue(), *(publish(body=str(number + 1)) for number in range(count))]
