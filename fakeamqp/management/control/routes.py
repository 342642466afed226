"""The table of routes. A row names a method of Python, whose arguments are the fields of the request.

The routes, the checks of requests and the OpenAPI document are made from these rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fakeamqp.broker import Broker
from fakeamqp.endpoint import Endpoint
from fakeamqp.faults import Faults, Rule
from fakeamqp.faults.handle import Handle
from fakeamqp.inspect.collection import Collection
from fakeamqp.inspect.expectations import KINDS
from fakeamqp.inspect.handles import ConnectionHandle, QueueHandle
from fakeamqp.inspect.messages import DeadLetteredView, DroppedView, PublishedView, ReturnedView
from fakeamqp.inspect.topology import ConnectionView, QueueView
from fakeamqp.management.control.schemas import Arguments, BadRequest, Schema, to_json, view_schema
from fakeamqp.management.control.words import add_fault, fault_schema
from fakeamqp.management.errors import Refused
from fakeamqp.model.messages.message import MessageProperties
from fakeamqp.runtime.clock.handle import Clock, Mode, TimerView
from fakeamqp.trace.checks.finding import Finding
from fakeamqp.trace.timeline import Trace

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fakeamqp.inspect.explanations import Explanation
    from fakeamqp.management.control.control import Control

LONGEST_WAIT = 300.0
"""Real seconds that one request waits at most."""
JSON = "application/json"
_MOST_SHOWN = 1000
_MOST_MISSES = 5


@dataclass(frozen=True)
class FaultView:
    """A fault: see `fakeamqp.faults.Handle`. `held` is how many methods it holds, `plan` that of chaos."""

    id: int
    sentence: str
    hits: int
    held: int
    removed: bool
    error: str | None
    near_misses: tuple[str, ...]
    plan: str | None

    @classmethod
    def of(cls, control: Control, handle: Handle) -> FaultView:
        """The view of a fault at this moment."""
        with control.engine.look():
            return cls(
                control.number_of(handle),
                handle.sentence,
                handle.hits,
                getattr(handle, "held", 0),
                handle.removed,
                None if handle.error is None else repr(handle.error),
                tuple(islice(handle.near_misses(), _MOST_MISSES)),
                getattr(handle, "plan", None),
            )


@dataclass(frozen=True)
class ClockView:
    """The clock: see `fakeamqp.Clock`. `elapsed` is null on a real clock, `time` is seconds since 1970."""

    mode: Mode
    now: datetime
    time: float
    elapsed: float | None
    rate: float
    timers: tuple[TimerView, ...]


@dataclass(frozen=True)
class HttpRoute:
    """One method of one path.

    Attributes:
        method: of HTTP.
        path: below the prefix, with variables in braces.
        function: a method of the owner of the path, see `OWNERS`; or a function that takes the owner.
        answer: the schema of the answer; None for none.
        key: the name of the result in the answer, if that is a number or a text.
        keywords: declares what the function takes as `**`.
        needs: what the broker must be able to do; by default the first word of the path.
        status: of the answer.
        body: the schema of the request, which the function takes as a whole; None for that of its arguments.
        kind: the type of the content of the answer.
    """

    method: str
    path: str
    function: Callable[..., Any]
    answer: Schema | None = None
    key: str = ""
    keywords: type | None = None
    needs: str = ""
    status: int = 200
    body: Schema | None = None
    kind: str = JSON

    @property
    def arguments(self) -> Arguments:
        """The fields of the request."""
        return Arguments.of(self.function, self.keywords)

    async def answer_to(self, control: Control, names: Mapping[str, str], said: Mapping[str, Any]) -> Any:
        """The answer to a request with these fields, as JSON or as bytes; None for none.

        Raises:
            Refused: a proxy cannot do this, or what the path names does not exist.
            FakeAMQPError: the method has raised it.
        """
        needs = self.needs or self.path.split("/")[1]
        why_not = control.endpoint._impossible.get(needs)
        if why_not is not None:
            raise Refused(409, "impossible", f"{needs} is not possible: {why_not}")
        prefix = max((each for each in OWNERS if self.path.startswith(each)), key=len)
        owner = OWNERS[prefix](control, names)
        if self.body is not None:
            result = self.function(owner, said)
        else:
            positional, named = self.arguments.read(said)
            result = self._bound(owner, named)(*positional, **named)
        if inspect.isawaitable(result):
            result = await result
        if self.answer is None:
            return None
        if self.kind != JSON:
            return result
        if self.key:
            return {self.key: result if isinstance(result, (int, float)) else str(result)}
        return _shown(control, owner if result is None else result)

    def _bound(self, owner: Any, named: Mapping[str, Any]) -> Callable[..., Any]:
        if "." not in self.function.__qualname__:
            return lambda *positional, **named: self.function(owner, *positional, **named)
        name = self.function.__name__
        if not hasattr(owner, name):
            raise BadRequest(f"there is no {name}() of this: {owner}")
        if "timeout" in self.arguments.fields:
            if named.get("timeout", 0.0) > LONGEST_WAIT:
                raise BadRequest(f"timeout must be at most {LONGEST_WAIT:g} seconds; ask again to go on")
            # A wait must not keep the server from answering others.
            waiting: Callable[..., Any] = getattr(owner, name).aio
            return waiting
        bound: Callable[..., Any] = getattr(owner, name)
        return bound


def _shown(control: Control, value: Any) -> Any:
    """A result as JSON."""
    if isinstance(value, Handle):
        return to_json(FaultView.of(control, value))
    if isinstance(value, list):
        return [_shown(control, each) for each in value]
    if isinstance(value, dict):
        return {name: _shown(control, each) for name, each in value.items()}
    return to_json(value)


def show(fault: Handle) -> Handle:
    """Show one fault with its hits."""
    return fault


def faults(faults: Faults) -> list[Handle]:
    """List the faults since the last reset with their hits, ended ones included."""
    return list(faults._handles)


def clock(clock: Clock) -> ClockView:
    """Show the time and the pending timers."""
    elapsed = None if clock.mode == "real" else clock.elapsed
    return ClockView(clock.mode, clock.now(), clock.time(), elapsed, clock.rate, clock.timers)


def messages(recorded: Any, last: int = 100) -> dict[str, Any]:
    """List the latest messages of the kind that the path names, oldest first.

    Args:
        recorded: the messages.
        last: how many, at most 1000.
    """
    shown = recorded[-min(last, _MOST_SHOWN) :] if last > 0 else []
    return {"total": len(recorded) + recorded.dropped, "messages": list(shown)}


def connections(endpoint: Endpoint) -> Collection[ConnectionHandle]:
    """List the open connections, oldest first."""
    return endpoint.connections


def explain(
    broker: Broker,
    exchange: str,
    routing_key: str,
    headers: Mapping[str, Any] | None = None,
    *,
    body: bytes | str = b"",
    virtual_host: str = "/",
    mandatory: bool = False,
    **properties: Unpack[MessageProperties],
) -> Explanation:
    """Explain where a message would be routed now, and why.

    Args:
        broker: that has the exchange.
        exchange: the exchange to publish to; "" is the default exchange.
        routing_key: of the message.
        headers: of the message.
        body: of the message; only its size matters.
        virtual_host: the virtual host of the exchange.
        mandatory: whether the publisher asks for unroutable messages to be returned.
        properties: further properties of the message, such as `expiration`.
    """
    return broker.exchange(exchange, virtual_host).explain(
        routing_key, headers, body=body, mandatory=mandatory, **properties
    )


def jsonl(trace: Trace) -> bytes:
    """Return the trace as a recording, in JSON Lines."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "trace.jsonl")
        trace.jsonl(path)
        return path.read_bytes()


def html(trace: Trace, *, title: str = "") -> str:
    """Return the trace as a page.

    Args:
        trace: of the broker.
        title: of the page.
    """
    return trace.html(title=title)


# --- the table ------------------------------------------------------------------------------------------

OWNERS: Mapping[str, Callable[[Control, Mapping[str, str]], Any]] = {
    "/": lambda control, names: control.endpoint,
    "/faults": lambda control, names: control.endpoint.faults,
    "/faults/{fault}": lambda control, names: control.fault(names["fault"]),
    "/clock": lambda control, names: control.endpoint.clock,
    "/queues": lambda control, names: control.endpoint.queue(names["queue"], names["virtual_host"]),
    "/connections/{connection}": lambda control, names: control.connection(names["connection"]),
    "/trace": lambda control, names: control.endpoint.trace,
    "/published": lambda control, names: control.endpoint.published,
    "/returned": lambda control, names: control.endpoint.returned,
    "/dead_lettered": lambda control, names: control.endpoint.dead_lettered,
    "/dropped": lambda control, names: control.endpoint.dropped,
}
"""What routes are about, by the beginning of their path; the longest counts."""

_QUEUE = "/queues/{virtual_host}/{queue}"
_FAULT, _QUEUE_VIEW, _PUBLISHED = map(view_schema, (FaultView, QueueView, PublishedView))
_COUNT: Schema = {"type": "integer"}
_TEXT: Schema = {"type": "string"}


def _list_of(view: type) -> Schema:
    return {"type": "array", "items": view_schema(view)}


def _records(name: str, expect: Callable[..., Any], view: type) -> tuple[HttpRoute, HttpRoute]:
    """List, and expect, messages of one kind."""
    listed = {"type": "object", "properties": {"total": _COUNT, "messages": _list_of(view)}}
    keywords = KINDS[name].keywords
    return (
        HttpRoute("GET", f"/{name}", messages, listed),
        HttpRoute("POST", f"/{expect.__name__}", expect, _list_of(view), "", keywords, name),
    )


ROUTES: tuple[HttpRoute, ...] = (
    HttpRoute("GET", "/faults", faults, _list_of(FaultView)),
    HttpRoute("POST", "/faults", add_fault, _FAULT, status=201, body=fault_schema()),
    HttpRoute("DELETE", "/faults", Faults.clear),
    HttpRoute("POST", "/faults/verify", Faults.verify),
    HttpRoute("GET", "/faults/{fault}", show, _FAULT),
    HttpRoute("DELETE", "/faults/{fault}", Handle.remove, _FAULT),
    HttpRoute("POST", "/faults/{fault}/wait", Handle.wait, _FAULT),
    HttpRoute("POST", "/faults/{fault}/release", Rule.release, _COUNT, "count"),
    HttpRoute("GET", "/clock", clock, view_schema(ClockView)),
    HttpRoute("POST", "/clock/advance", Clock.advance),
    HttpRoute("POST", "/clock/advance_to_next", Clock.advance_to_next, {"type": "number"}, "seconds"),
    *_records("published", Broker.expect_published, PublishedView),
    *_records("returned", Broker.expect_returned, ReturnedView),
    *_records("dead_lettered", Broker.expect_dead_lettered, DeadLetteredView),
    *_records("dropped", Broker.expect_dropped, DroppedView),
    HttpRoute(
        "POST",
        "/expect_nothing_published",
        Broker.expect_nothing_published,
        keywords=KINDS["published"].keywords,
    ),
    HttpRoute("POST", "/publish", Broker.publish, _PUBLISHED, keywords=MessageProperties),
    HttpRoute("POST", "/explain", explain, _TEXT, "text", MessageProperties),
    HttpRoute("GET", _QUEUE, QueueHandle.view, _QUEUE_VIEW),
    HttpRoute("POST", f"{_QUEUE}/wait_for", QueueHandle.wait_for, _QUEUE_VIEW),
    HttpRoute("POST", f"{_QUEUE}/purge", QueueHandle.purge, _COUNT, "count"),
    HttpRoute("POST", f"{_QUEUE}/cancel_consumers", QueueHandle.cancel_consumers, _COUNT, "count"),
    HttpRoute("GET", "/connections", connections, _list_of(ConnectionView)),
    HttpRoute("POST", "/connections/{connection}/close", ConnectionHandle.close),
    HttpRoute("POST", "/connections/{connection}/block", ConnectionHandle.block),
    HttpRoute("POST", "/connections/{connection}/unblock", ConnectionHandle.unblock),
    HttpRoute("GET", "/trace/timeline", Trace.timeline, _TEXT, kind="text/plain; charset=utf-8"),
    HttpRoute("GET", "/trace/jsonl", jsonl, _TEXT, kind="application/jsonl"),
    HttpRoute("GET", "/trace/html", html, _TEXT, kind="text/html; charset=utf-8"),
    HttpRoute("POST", "/trace/check", Trace.findings, _list_of(Finding)),
    HttpRoute("POST", "/expect_no_findings", Endpoint.expect_no_findings),
    HttpRoute("POST", "/wait_until_idle", Endpoint.wait_until_idle),
    HttpRoute("POST", "/reset", Broker.reset),
    HttpRoute("POST", "/restart", Broker.restart),
)
