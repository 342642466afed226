"""The routes of the control interface below `/control/v1`.

An error is answered as RabbitMQ's API does: `{"error": name, "reason": text}`, where the name is the class of
the Python error, and the text is its text. So a failed expectation reads the same in every language.
"""

from __future__ import annotations

import re
from asyncio import CancelledError
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from fakeamqp.errors import FakeAMQPError, near_match
from fakeamqp.faults.errors import UnusedFault
from fakeamqp.management.bodies import decoded, read_body
from fakeamqp.management.control.access import check_login
from fakeamqp.management.control.control import PREFIX
from fakeamqp.management.control.document import document
from fakeamqp.management.control.routes import ROUTES, HttpRoute
from fakeamqp.management.control.schemas import Schema
from fakeamqp.management.errors import Refused, bad_request, not_found
from fakeamqp.management.resource import HttpAnswer, refused, respond
from fakeamqp.model.errors import NotFound
from fakeamqp.runtime.errors import ClockError, NothingPending

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from fakeamqp.management.control.control import Control


def routes() -> list[BaseRoute]:
    """The routes, for an app whose `state.control` is a `Control`."""
    paths: dict[str, dict[str, HttpRoute]] = {}
    for each in ROUTES:
        paths.setdefault(each.path, {})[each.method] = each
    return [
        Route(f"{PREFIX}/openapi.json", _document),
        *(Route(PREFIX + path, _Path(routes)) for path, routes in paths.items()),
        Route(f"{PREFIX.rpartition('/')[0]}/{{rest:path}}", _unknown),
    ]


async def _document(_: Request) -> Any:
    return respond(HttpAnswer(200, document()))


async def _unknown(request: Request) -> Any:
    known = {PREFIX + each.path for each in ROUTES}
    hint = near_match(request.url.path, known) or f"; {PREFIX}/openapi.json lists all paths"
    return refused(not_found(f"there is no path {request.url.path}{hint}"))


class _Path:
    """One path with its methods. It is an ASGI app."""

    def __init__(self, routes: Mapping[str, HttpRoute]) -> None:
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = await self._answer(request, request.app.state.control)
        except CancelledError:  # The server stops, and must not log this as an error of the app.
            answer = refused(Refused(503, "stopped", "the broker has stopped"))
        except Refused as refusal:
            answer = refused(refusal)
        await answer(scope, receive, send)

    async def _answer(self, request: Request, control: Control) -> Any:
        check_login(request, control)
        route = self._routes.get(request.method)
        if route is None:
            allowed = ", ".join(self._routes)
            reason = f"{request.url.path} takes {allowed}, not {request.method}"
            raise Refused(405, "method_not_allowed", reason, {"allow": allowed})
        path = request.path_params.items()
        names = {name: unquote(value, errors="surrogateescape") for name, value in path}
        try:
            said = await fields_of(request, route.arguments.fields)
            result = await route.answer_to(control, names, said)
        except FakeAMQPError as problem:
            raise Refused(_status_of(problem, control), type(problem).__name__, str(problem)) from problem
        except Refused:
            raise
        except Exception as problem:
            with control.engine:
                control.engine.failures.record(f"{request.method} {request.url.path}", problem)
            raise Refused(500, "internal_error", repr(problem)) from problem
        if result is None:
            return respond(HttpAnswer(204))
        if isinstance(result, str):
            result = result.encode("utf-8", "replace")
        return respond(HttpAnswer(route.status, result, {"content-type": route.kind}))


def _status_of(problem: FakeAMQPError, control: Control) -> int:
    """404 for what does not exist, 409 for what is not as expected or not possible now, otherwise 400."""
    if isinstance(problem, (LookupError, NotFound)):
        return 404
    unmovable = isinstance(problem, ClockError) and control.endpoint.clock.mode != "virtual"
    return 409 if unmovable or isinstance(problem, (AssertionError, NothingPending, UnusedFault)) else 400


async def fields_of(request: Request, known: Mapping[str, Schema]) -> dict[str, Any]:
    """The fields of a request: the parameters of a GET, otherwise the members of its JSON object.

    Raises:
        Refused: 400: the body is no JSON object, or too large; 415: it says that it is something else.
    """
    if request.method == "GET":
        return {name: _parameter(text, known.get(name, {})) for name, text in request.query_params.items()}
    body = await read_body(request)
    if not body:
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused(
            415, "unsupported_media_type", "the body must be JSON, with the content type application/json"
        )
    try:
        said = decoded(body)
    except ValueError as problem:
        raise bad_request(f"the body is no JSON: {problem}") from None
    if not isinstance(said, dict):
        raise bad_request("the body must be a JSON object")
    return said


def _parameter(text: str, schema: Schema) -> Any:
    """A parameter after the question mark: a number where one is expected."""
    return int(text) if "integer" in schema.get("type", ()) and re.fullmatch(r"\d{1,18}", text) else text
