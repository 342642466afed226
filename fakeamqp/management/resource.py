"""Resources: what a path of the API names, with a function for each method that it takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import Enum
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from fakeamqp.management.access import Role, Visitor, authenticate, require
from fakeamqp.management.bodies import decoded, read_body
from fakeamqp.management.errors import Refused, absent, bad_request, key_missing, not_authorised, not_found
from fakeamqp.management.history import check_ranges
from fakeamqp.management.values import jsonable
from fakeamqp.model.errors import AccessRefused, ModelError, NotFound
from fakeamqp.model.names import LONGEST_NAME, octets_of
from fakeamqp.model.policies import ParameterError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from fakeamqp.management.choices import ManagementChoices
    from fakeamqp.management.context import Management
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost


@dataclass(frozen=True)
class HttpAnswer:
    """An answer whose body is not the JSON of a value alone.

    Args:
        status: of the answer.
        body: a value for JSON, bytes as they are, or None for no body.
        headers: besides those that every answer has.
    """

    status: int = 204
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)


CREATED = HttpAnswer(201)
NO_CONTENT = HttpAnswer(204)


class InVirtualHost(Enum):
    """What a user needs for a resource whose path names a virtual host, the variable `vhost`."""

    USE = "use"
    """Permissions in it."""
    SEE = "see"
    """Permissions in it, or the tag monitoring."""
    ANY = "any"
    """Nothing; the handler checks whether the virtual host exists."""


class ApiCall:
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
        #: How many samples the answer has of each count.
        self.samples = 0

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters after the question mark."""
        return self.request.query_params

    @property
    def choices(self) -> ManagementChoices:
        """What the version of RabbitMQ does otherwise."""
        return self.management.choices

    def flag(self, name: str) -> bool:
        """Whether a parameter after the question mark is "true"."""
        return self.query.get(name) == "true"

    @cached_property
    def json(self) -> dict[str, Any]:
        """The body as a JSON object; {} for an empty body.

        Raises:
            Refused: 400: it is no JSON object.
        """
        if not self.body:
            return {}
        try:
            parsed = decoded(self.body)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise bad_request("not_json")
        return parsed

    def fields(self, *names: str) -> list[Any]:
        """The values of fields that the body must have.

        Raises:
            Refused: 400: some are missing; the reason names all of them.
        """
        missing = [name for name in names if name not in self.json]
        if missing:
            raise key_missing(*missing)
        return [self.json[name] for name in names]

    def text(self, name: str, usual: str = "") -> str:
        """A field that is a text.

        Raises:
            Refused: 400: it is something else.
        """
        value = self.json.get(name, usual)
        if not isinstance(value, str):
            raise bad_request(["not_string", name])
        return value

    def tags(self) -> tuple[str, ...] | None:
        """The field `tags`: a list of texts, or one text with commas; None if it is missing.

        Raises:
            Refused: 400: it is something else.
        """
        value = self.json.get("tags")
        if isinstance(value, str):
            value = [each.strip() for each in value.split(",") if each.strip()]
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise bad_request(["not_list_of_strings", "tags"])
        return tuple(value)

    def boolean(self, name: str, usual: bool = False) -> bool:
        """A field that is true or false, or the text of either.

        Raises:
            Refused: 400: it is something else.
        """
        value = self.json.get(name, usual)
        if value in ("true", "false"):
            return bool(value == "true")
        if not isinstance(value, bool):
            raise bad_request(["not_boolean", value])
        return value

    @property
    def arguments(self) -> dict[str, Any]:
        """The field `arguments`; {} where it is missing or no object (measured).

        Raises:
            Refused: 400: a value is null, which no field table has (measured).
        """
        found = self.json.get("arguments")
        return table(found) if isinstance(found, dict) else {}

    def virtual_host(self, state: BrokerState) -> VirtualHost:
        """The virtual host of the path.

        Raises:
            Refused: 404: it does not exist.
        """
        found = state.virtual_hosts.get(self.names["vhost"])
        if found is None:
            raise absent()
        return found

    def virtual_hosts(self, state: BrokerState) -> list[VirtualHost]:
        """The virtual host of the path; without one, all in which the user has permissions.

        Raises:
            Refused: 404: it does not exist.
        """
        if "vhost" in self.names:
            return [self.virtual_host(state)]
        return [each for name, each in state.virtual_hosts.items() if self.visitor.may_use(name)]


def table(found: dict[str, Any]) -> dict[str, Any]:
    """An object of JSON as a field table.

    Raises:
        Refused: 400: a value is null (measured).
    """
    rest: list[Any] = [found]
    while rest:
        each = rest.pop()
        if each is None:
            raise bad_request("null_not_allowed")
        if isinstance(each, dict):
            rest += each.values()
        elif isinstance(each, list):
            rest += each
    return found


def check_name(kind: str, name: str) -> None:
    """Refuse a name that no method of AMQP can carry.

    Raises:
        Refused: 400 (measured for queues).
    """
    size = octets_of(name)
    if size > LONGEST_NAME:
        raise bad_request(f"{kind} should be less than 255 bytes, actually was {size}\n")


_compact = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))

Handler: TypeAlias = Callable[[ApiCall], object]
"""Returns a value for JSON, or an `HttpAnswer`."""


class Resource:
    """What one path of the API names. It is an ASGI app.

    Args:
        path: with variables in braces; each stands for one segment.
        get, put, post, delete: what each method does; a method without a function is refused with 405.
        role: what a user needs to read.
        writes: what a user needs for the other methods; default: the same.
        vhost: what a user needs for the virtual host in the path, if it has one.
        exists: whether the personality has the resource.
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
        writes: Role | None = None,
        vhost: InVirtualHost = InVirtualHost.USE,
        exists: Callable[[ManagementChoices], bool] = lambda _: True,
    ) -> None:
        self.path: str = f"/api/{path}"
        self._roles = dict.fromkeys(("PUT", "POST", "DELETE"), role if writes is None else writes)
        self._role = role
        self._vhost = vhost if "{vhost}" in path else InVirtualHost.ANY
        self._exists = exists
        by_method = {"HEAD": get, "GET": get, "PUT": put, "POST": post, "DELETE": delete}
        self._handlers = {method: handler for method, handler in by_method.items() if handler is not None}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        management: Management = request.app.state.management
        try:
            answer = await self._answer(management, request)
        except Refused as refusal:
            answer = refused(refusal)
        answer.headers["allow"] = self._allowed
        await answer(scope, receive, send)

    async def _answer(self, management: Management, request: Request) -> Response:
        if not self._exists(management.choices):
            raise absent()
        if request.method == "OPTIONS":
            return respond(HttpAnswer(200))
        handler = self._handlers.get(request.method)
        if handler is None:
            raise Refused(405, "method_not_allowed", None)
        if not _accepts_json(request.headers.get("accept")):
            raise Refused(406, "not_acceptable", None)
        host = "" if request.client is None else request.client.host
        visitor = authenticate(management, request.headers.get("authorization"), host)
        require(visitor, self._roles.get(request.method, self._role))
        names = {name: unquote(value) for name, value in request.path_params.items()}
        self._check_virtual_host(management, visitor, names, request.method)
        body = await read_body(request)
        call = ApiCall(management, request, visitor, names, body)
        if request.method == "GET":
            check_ranges(self.path, call.query)
        try:
            result = handler(call)
        except AccessRefused:
            raise not_authorised("Access refused.") from None
        except NotFound as problem:
            raise not_found(problem.text) from None
        except ModelError as problem:
            raise bad_request(problem.text) from None
        except ParameterError as problem:
            raise bad_request(problem.reason) from None
        except Refused:
            raise
        except Exception as problem:
            with management.engine:
                management.engine.failures.record(f"{request.method} {self.path}", problem)
            raise Refused(500, "internal_error", repr(problem)) from problem
        return respond(result if isinstance(result, HttpAnswer) else HttpAnswer(200, result))

    def _check_virtual_host(
        self, management: Management, visitor: Visitor, names: Mapping[str, str], method: str
    ) -> None:
        if self._vhost is InVirtualHost.ANY:
            return
        name = names["vhost"]
        if not management.read(lambda state: name in state.virtual_hosts):
            raise not_found("vhost_not_found") if method in ("PUT", "POST") else absent()
        allowed = visitor.may_see if self._vhost is InVirtualHost.SEE else visitor.may_use
        if allowed(name):
            return
        if management.choices.hides_virtual_hosts:
            raise not_found("Not Found")
        raise not_authorised("User not authorised to access virtual host")

    @property
    def _allowed(self) -> str:
        return ", ".join([*self._handlers, "OPTIONS"])


def _accepts_json(accept: str | None) -> bool:
    """Whether a header `Accept` permits the only format that there is."""
    kinds = [each.partition(";")[0].strip() for each in (accept or "*/*").split(",")]
    return any(kind in ("*/*", "application/*", "application/json") for kind in kinds)


def respond(answer: HttpAnswer) -> Response:
    """The response of an answer."""
    headers = {
        "cache-control": "no-cache",
        "content-security-policy": "script-src 'self'; object-src 'self'",
        "date": formatdate(usegmt=True),
        "vary": "accept, accept-encoding, origin",
        **answer.headers,
    }
    if answer.body is None:
        if answer.status != 204:
            headers["content-length"] = "0"
        return Response(status_code=answer.status, headers=headers)
    if isinstance(answer.body, bytes):
        return Response(answer.body, answer.status, headers)
    return Response(_encoded(answer.body), answer.status, {"content-type": "application/json", **headers})


def _encoded(value: object) -> bytes:
    """JSON. A list is made of its rows, so that other threads may go on between two of them."""
    if isinstance(value, list):
        return b"[" + b",".join(map(_encoded, value)) + b"]"
    try:
        text = _compact(value, allow_nan=False)
    except ValueError:  # A table of AMQP 0-10, or a function of a test, has brought NaN.
        text = _compact(jsonable(value))
    return text.encode("utf-8", "replace")


def refused(refusal: Refused) -> Response:
    """The response of a refusal, in RabbitMQ's form: without a body if there is no reason."""
    reason = refusal.reason
    if reason is None:
        return respond(HttpAnswer(refusal.status, None, refusal.headers))
    return respond(HttpAnswer(refusal.status, {"error": refusal.error, "reason": reason}, refusal.headers))
