"""Resources: what a path of the API names, with a function for each method that it takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from fakeamqp.management.access import Role, Visitor, authenticate
from fakeamqp.management.errors import Refused, bad_request, not_authorised

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from fakeamqp.management.context import Management

__all__ = ["Answer", "Call", "Handler", "Resource"]


@dataclass(frozen=True)
class Answer:
    """An answer whose body is not the JSON of a value alone.

    Args:
        status: of the answer.
        body: a value for JSON, bytes as they are, or None for no body.
        headers: besides those that every answer has.
    """

    status: int = 204
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Call:
    """One request, after the login.

    Args:
        management: the broker.
        request: as Starlette has it.
        visitor: who asks.
        names: the variables of the path, decoded, such as {"vhost": "/", "name": "orders"}.
        body: of the request.
    """

    def __init__(
        self,
        management: Management,
        request: Request,
        visitor: Visitor,
        names: Mapping[str, str],
        body: bytes,
    ) -> None:
        self.management = management
        self.request = request
        self.visitor = visitor
        self.names = names
        self.body = body

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters after the question mark."""
        return self.request.query_params

    @cached_property
    def json(self) -> dict[str, Any]:
        """The body as a JSON object; {} for an empty body.

        Raises:
            Refused: 400: it is no JSON object.
        """
        if not self.body.strip():
            return {}
        try:
            parsed = json.loads(self.body)
        except (ValueError, RecursionError):
            raise Refused(400, "bad_request", "body_not_json") from None
        if not isinstance(parsed, dict):
            raise bad_request("body_not_json_object")
        return parsed


Handler: TypeAlias = Callable[[Call], object]
"""Returns a value for JSON, or an `Answer`."""


class Resource:
    """What one path of the API names. It is an ASGI app.

    Args:
        path: with variables in braces; each stands for one segment.
        get, put, post, delete: what each method does; a method without a function is refused with 405.
        role: what a user needs for every method.
    """

    def __init__(
        self,
        path: str,
        *,
        get: Handler | None = None,
        put: Handler | None = None,
        post: Handler | None = None,
        delete: Handler | None = None,
        role: Role = Role.MANAGEMENT,
    ) -> None:
        self.path = path
        self.role = role
        by_method = {"GET": get, "HEAD": get, "PUT": put, "POST": post, "DELETE": delete}
        self._handlers = {method: handler for method, handler in by_method.items() if handler is not None}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except Refused as refusal:
            answer = refused(refusal)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        management: Management = request.app.state.management
        if request.method == "OPTIONS":
            return Response(headers={"allow": self._allowed})
        handler = self._handlers.get(request.method)
        if handler is None:
            raise Refused(405, "Method Not Allowed", "Method Not Allowed", {"allow": self._allowed})
        visitor = authenticate(management, request.headers.get("authorization"))
        if not visitor.has(self.role):
            raise not_authorised(f"Not {self.role.name.lower()} user")
        body = await request.body()
        names = {name: unquote(value) for name, value in request.path_params.items()}
        result = handler(Call(management, request, visitor, names, body))
        return respond(result if isinstance(result, Answer) else Answer(200, result))

    @property
    def _allowed(self) -> str:
        return ", ".join([*self._handlers, "OPTIONS"])


def respond(answer: Answer) -> Response:
    """The response of an answer."""
    headers = {"cache-control": "no-cache", "vary": "accept, accept-encoding, origin", **answer.headers}
    if answer.body is None:
        return Response(status_code=answer.status, headers=headers)
    if isinstance(answer.body, bytes):
        return Response(answer.body, answer.status, headers)
    encoded = json.dumps(answer.body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(encoded, answer.status, {"content-type": "application/json", **headers})


def refused(refusal: Refused) -> Response:
    """The response of a refusal, in RabbitMQ's form."""
    return respond(
        Answer(refusal.status, {"error": refusal.error, "reason": refusal.reason}, refusal.headers)
    )
