"""The ASGI app of the inspector: the page, the event stream, questions and actions.

| path | what it is |
|---|---|
| `/`, `/page.css`, `/page.js` | the page |
| `/events` | the event stream (`text/event-stream`): `state` with a whole snapshot, then `change`s |
| `/ask/NAME` | a question of `actions.QUESTIONS`: POST with a JSON object, answered by JSON |
| `/do/NAME` | an action of `actions.ACTIONS`: POST with a JSON object, answered by `{"said": "..."}` |

An error is answered by `{"error": "..."}` with a text for the user.
"""

from __future__ import annotations

import asyncio
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from fakeamqp.errors import FakeAMQPError
from fakeamqp.management.inspector.access import Denied, check_login, check_place
from fakeamqp.management.inspector.actions import ACTIONS, QUESTIONS
from fakeamqp.management.inspector.snapshot import changes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request

    from fakeamqp.management.inspector.inspector import Inspector

__all__ = ["inspector_app"]

_PERIOD = 0.25
"""Real seconds between two looks at the broker."""
_SHARE = 0.1
"""The share of the time that looks may take; a large broker is looked at less often."""
_FIRST_LINES = 1000
_LINES = 300
"""Entries of the timeline that the first and every other event brings at most."""
_SILENCE = 15.0
"""Real seconds without a change after which a comment is sent, so that a page that has gone is noticed."""
_MOST_ASKED = 16 * 1024 * 1024

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
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
_FILES = {
    "": ("page.html", "text/html"),
    "page.css": ("page.css", "text/css"),
    "page.js": ("page.js", "text/javascript"),
}


def inspector_app(inspector: Inspector, host: str = "127.0.0.1") -> Starlette:
    """The app, to be mounted at `/inspector`.

    Args:
        inspector: of the broker.
        host: the host that the broker was given, by which the page may be opened.
    """

    def guarded(
        answer: Callable[[Request], Awaitable[Response]], login: bool = True
    ) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            try:
                check_place(request, host)
                if login:
                    check_login(request, inspector)
                return await answer(request)
            except Denied as denied:
                return _json({"error": denied.text}, denied.status)

        return handle

    async def page(request: Request) -> Response:
        name, kind = _FILES[request.url.path.rpartition("/")[2]]
        text = files(__package__).joinpath(name).read_bytes()
        return Response(text, media_type=kind, headers=_HEADERS)

    async def events(request: Request) -> Response:
        return StreamingResponse(_stream(inspector), media_type="text/event-stream", headers=_HEADERS)

    async def ask(request: Request) -> Response:
        answer = QUESTIONS.get(name := request.path_params["name"])
        if answer is None:
            raise Denied(404, f"there is no question {name!r}")
        return _answered(lambda asked: answer(inspector, asked), await _asked(request))

    async def do(request: Request) -> Response:
        action = ACTIONS.get(name := request.path_params["name"])
        if action is None:
            raise Denied(404, f"there is no action {name!r}")
        return _answered(lambda asked: {"said": action(inspector, asked)}, await _asked(request))

    return Starlette(
        routes=[
            *(Route(f"/{name}", guarded(page, login=False)) for name in _FILES),
            Route("/events", guarded(events)),
            Route("/ask/{name}", guarded(ask), methods=["POST"]),
            Route("/do/{name}", guarded(do), methods=["POST"]),
        ]
    )


async def _asked(request: Request) -> dict[str, Any]:
    """The JSON object of a request."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Denied(415, "the request must be JSON, with the content type application/json")
    octets = bytearray()
    async for chunk in request.stream():
        octets += chunk
        if len(octets) > _MOST_ASKED:
            raise Denied(413, f"the request has more than {_MOST_ASKED} bytes")
    try:
        asked = json.loads(octets or b"{}")
    except (ValueError, RecursionError) as problem:
        raise Denied(400, f"the request is no JSON: {problem}") from None
    if not isinstance(asked, dict):
        raise Denied(400, "the request must be a JSON object")
    return asked


def _answered(answer: Callable[[dict[str, Any]], Any], asked: dict[str, Any]) -> Response:
    try:
        return _json(answer(asked))
    except (FakeAMQPError, TypeError, ValueError) as problem:
        return _json({"error": str(problem)}, 400)


def _json(value: Any, status: int = 200) -> Response:
    # ASCII only, since names of peers need not be valid Unicode.
    return Response(json.dumps(value), status, _HEADERS, "application/json")


async def _stream(inspector: Inspector) -> AsyncIterator[bytes]:
    """The events of one page. It looks at the broker while the page reads, and ends with the page."""
    clock = asyncio.get_running_loop().time
    began = clock()
    snapshot = inspector.snapshot()
    lines = inspector.timeline.lines(0, _FIRST_LINES)
    serial = 0 if lines is None else lines["next"]
    yield b"retry: 1000\n\n" + _event("state", {**snapshot, "timeline": lines, "clock": _instant(inspector)})
    spoken = clock()
    while True:
        await asyncio.sleep(max(_PERIOD, (clock() - began) / _SHARE))
        began = clock()
        before, snapshot = snapshot, inspector.snapshot()
        found = changes(before, snapshot)
        lines = inspector.timeline.lines(serial, _LINES)
        if lines is not None:
            serial = lines["next"]
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
