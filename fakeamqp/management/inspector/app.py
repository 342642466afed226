"""The routes of the inspector below `/inspector`: the page, the event stream and questions.

| path | what it is |
|---|---|
| `/`, `/page.css`, `/page.js` | the page |
| `/events` | the event stream (`text/event-stream`): `state` with a whole snapshot, then `change`s |
| `/ask/NAME` | a question of `actions.QUESTIONS`: POST with a JSON object, answered by JSON |

What the page does to the broker, it does by the control interface, whose errors and login these paths share.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from fakeamqp.errors import FakeAMQPError
from fakeamqp.management.control.access import check_login
from fakeamqp.management.control.app import fields_of
from fakeamqp.management.errors import Refused, not_found
from fakeamqp.management.inspector.actions import QUESTIONS
from fakeamqp.management.inspector.snapshot import changes
from fakeamqp.trace.pages import page_of, script_of, style_of, words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from typing import TypeAlias

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from fakeamqp.management.inspector.inspector import Inspector

    Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

_PERIOD = 0.25
"""Real seconds between two looks at the broker."""
_SHARE = 0.1
"""The share of the time that looks may take; a large broker is looked at less often."""
_FIRST_LINES = 1000
_LINES = 300
"""Entries of the timeline that the first and every other event brings at most."""
_SILENCE = 15.0
"""Real seconds without a change after which a comment is sent, so that a page that has gone is noticed."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_LINKS = """<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
<script src="page.js" defer></script>"""
_FILES: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "": ("text/html", lambda package: page_of(package, _LINKS, title="fakeamqp inspector")),
    "page.css": ("text/css", style_of),
    "page.js": ("text/javascript", script_of),
}
PUBLIC = frozenset(("/", "/inspector", *(f"/inspector/{name}" for name in _FILES)))
"""Paths without a login, which say nothing about the broker."""


def routes() -> list[BaseRoute]:
    """The routes of the page, for an app whose `state` has the control interface and the inspector."""
    return [
        Route("/", _to_page),
        Route("/inspector", _to_page),
        *(Route(f"/inspector/{name}", _page) for name in _FILES),
        Route("/inspector/events", _guarded(_events)),
        Route("/inspector/ask/{name}", _guarded(_ask), methods=["POST"]),
    ]


def _guarded(answer: Handler) -> Handler:
    async def handle(request: Request) -> Response:
        try:
            check_login(request, request.app.state.control)
            return await answer(request)
        except Refused as refusal:
            return _json({"error": refusal.error, "reason": refusal.reason}, refusal.status)
        except (FakeAMQPError, TypeError, ValueError) as problem:
            return _json({"error": type(problem).__name__, "reason": str(problem)}, 400)

    return handle


async def _to_page(request: Request) -> Response:
    """Browsers keep the fragment, with the token, when they are redirected."""
    text = "The inspector page is at /inspector/, the control interface at /control/v1/openapi.json.\n"
    return PlainTextResponse(text, 302, {**_HEADERS, "location": "/inspector/"})


async def _page(request: Request) -> Response:
    kind, made = _FILES[request.url.path.rpartition("/")[2]]
    return Response(made(__package__), media_type=kind, headers=_HEADERS)


async def _events(request: Request) -> Response:
    asked = request.query_params
    known = asked.get("serial", ""), asked.get("clears", "")
    serial, clears = (int(each) if each.isdecimal() else None for each in known)
    return _EventStream(request.app.state.inspector, serial or 0, clears)


async def _ask(request: Request) -> Response:
    answer = QUESTIONS.get(name := request.path_params["name"])
    if answer is None:
        raise not_found(f"there is no question {name!r}")
    return _json(answer(request.app.state.inspector, await fields_of(request, {})))


def _json(value: Any, status: int = 200) -> Response:
    # ASCII only, since names of peers need not be valid Unicode.
    return Response(json.dumps(value), status, _HEADERS, "application/json")


class _EventStream(Response):
    """The event stream of one page. It looks at the broker until the page is closed or the server stops.

    Starlette's own would end with an exception, and so with a traceback on stderr, when the server stops.
    """

    def __init__(self, inspector: Inspector, serial: int, clears: int | None) -> None:
        super().__init__(headers=_HEADERS, media_type="text/event-stream")
        del self.headers["content-length"]
        self._inspector = inspector
        self._known = serial, clears

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events. The server cancels this when it stops."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        closed = asyncio.ensure_future(_until_closed(receive))

        async def wait(seconds: float) -> bool:
            """Wait; returns whether the page is still open."""
            await asyncio.wait((closed,), timeout=seconds)
            return not closed.done()

        with suppress(asyncio.CancelledError):
            async for event in _events_of(self._inspector, wait, *self._known):
                await send({"type": "http.response.body", "body": event, "more_body": True})
        closed.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _until_closed(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _events_of(
    inspector: Inspector, wait: Callable[[float], Awaitable[bool]], serial: int, clears: int | None
) -> AsyncIterator[bytes]:
    clock = asyncio.get_running_loop().time
    began = clock()
    snapshot = inspector.snapshot()
    lines = inspector.timeline.lines(serial, _FIRST_LINES, clears)
    if lines is not None:
        serial, clears = lines["next"], lines["clears"]
    state = {**snapshot, "timeline": lines, "clock": _instant(inspector), "words": words()}
    yield b"retry: 1000\n\n" + _event("state", state)
    spoken = clock()
    while await wait(max(_PERIOD, (clock() - began) / _SHARE)):
        began = clock()
        before, snapshot = snapshot, inspector.snapshot()
        found = changes(before, snapshot)
        lines = inspector.timeline.lines(serial, _LINES, clears)
        if lines is not None:
            serial, clears = lines["next"], lines["clears"]
            found["timeline"] = lines
        if found:
            found["clock"] = _instant(inspector)
        elif clock() - spoken < _SILENCE:
            continue
        yield _event("change", found) if found else b": nothing new\n\n"
        spoken = clock()


def _instant(inspector: Inspector) -> float:
    """The broker's clock, which the instants of timers are compared with."""
    return round(inspector.state.clock.now(), 6)


def _event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
