"""The management node: a pair of links that declares, binds, purges and deletes, as RabbitMQ's clients do.

Both links have the same name and the property `paired`. A request is one settled transfer; its properties
have the method as subject and the path as `to`. The response goes out on the other link, correlated by the
id of the request. What RabbitMQ does not know makes its session crash: it ends with internal-error.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from urllib.parse import unquote_to_bytes

from fakeamqp.model.erlang import Atom, type_name
from fakeamqp.model.errors import AccessRefused, ChannelCrash, ModelError, NotFound
from fakeamqp.model.exchanges.hashing import phash2
from fakeamqp.model.names import NODE
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.model.queues.classic import ClassicQueue
from fakeamqp.protocols.amqp_1_0.addresses import MANAGEMENT, quoted
from fakeamqp.protocols.amqp_1_0.codec import composites as c, types as t
from fakeamqp.protocols.amqp_1_0.codec.errors import DecodeError
from fakeamqp.protocols.amqp_1_0.links import SETTLED, LinkFromClient, LinkToClient
from fakeamqp.protocols.amqp_1_0.replies import EndFault, LinkFault, Reply, SessionCrash
from fakeamqp.protocols.amqp_1_0.serial import MASK
from fakeamqp.protocols.amqp_1_0.values import Unconvertible, annotation_of, header_of, term

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.exchange import Binding
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_1_0.session import Amqp10Session

_CREDIT: Final = 8
_PROPERTIES, _APPLICATION, _VALUE = 0x73, 0x74, 0x77
_LINE: Final = 80
_ME: Final = "$me"
_NOTHING: Final = object()
"""A request without a value as its body."""
_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_BINDING: Final = re.compile(
    r"src=([0-9A-Za-z._~%-]+);dst([eq])=([0-9A-Za-z._~%-]+);key=([0-9A-Za-z._~%-]*);args=([0-9A-Za-z_-]*)"
)
_RESPONSE: Final = {"http:response": "1.1"}
Answer: TypeAlias = "tuple[str, Any]"
"""The status, and the body."""


class _Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


# --- the pair of links --------------------------------------------------------------------------------------


def concerns(body: c.Attach, source: Any, target: Any) -> bool:
    """Whether an attach is about a link of such a pair. A sender's is only if its messages are settled."""
    if body.role is False:
        return body.snd_settle_mode == SETTLED and getattr(target, "address", None) == MANAGEMENT
    return getattr(source, "address", None) == MANAGEMENT


def attach(session: Amqp10Session, body: c.Attach, source: Any, target: Any) -> None:
    """Answer an attach of one of the two links; LinkFault unless they are marked as a pair."""
    if (body.properties or {}).get("paired") is not True:
        raise LinkFault(Reply.INVALID_FIELD, "Link property 'paired' is not set to boolean value 'true'")
    said = {"source": source, "target": target, "properties": {t.Symbol("paired"): True}}
    if body.role is False:
        session.receiving[body.handle] = request = RequestLink(session, body, MANAGEMENT, _CREDIT)
        largest, said["rcv_settle_mode"] = session.choices.largest_message, 0
        session.answer_attach(body, snd_settle_mode=SETTLED, max_message_size=largest, **said)
        request.grant()
    else:
        session.sending[body.handle] = response = ResponseLink(session, body, MANAGEMENT)
        said |= {"rcv_settle_mode": body.rcv_settle_mode, "initial_delivery_count": response.delivery_count}
        session.answer_attach(body, snd_settle_mode=SETTLED, max_message_size=body.max_message_size, **said)


class ResponseLink(LinkToClient):
    """The link on which responses go to the client."""

    source_queue: str = ""

    def __init__(self, session: Amqp10Session, body: c.Attach, address: str) -> None:
        super().__init__(session, body, address)
        self.settled: bool = True
        self.largest_message: int | None = None
        self.credit_left: int = 0

    def flow(self, body: c.Flow) -> None:
        if body.link_credit is None:
            return
        self.credit_left = self.granted(body)
        if body.drain:
            self.delivery_count = (self.delivery_count + self.credit_left) & MASK
            self.credit_left = 0
        if body.drain or body.echo:
            self.send_flow(self.credit_left, available=0, drain=bool(body.drain))

    def respond(self, payload: bytes) -> None:
        self.delivery_count: int = (self.delivery_count + 1) & MASK
        self.credit_left -= 1
        self.session.send_transfers(self.frames(self.session.take_delivery_id(), b"", payload))

    def end(self) -> None:
        """Nothing is kept."""


class RequestLink(LinkFromClient):
    """The link on which requests come."""

    def flow(self, body: c.Flow) -> None:
        if body.echo:
            self.grant()

    def transfer(self, body: c.Transfer, payload: bytes) -> None:
        """Carry out a request and send the response.

        Raises:
            LinkFault: the request exceeds the credit.
            EndFault: the other link is missing or has no credit, or RabbitMQ would crash.
        """
        session = self.session
        if self.credit <= 0:
            raise LinkFault(Reply.TRANSFER_LIMIT)
        self.count()
        links = [each for each in session.sending.values() if isinstance(each, ResponseLink)]
        response = next((each for each in links if each.link_name == self.link_name), None)
        if response is None:
            raise EndFault(Reply.PRECONDITION_FAILED, "received transfer on half open management link pair")
        if response.credit_left <= 0:
            text = f"insufficient credit ({response.credit_left}) for management link from RabbitMQ to client"
            raise EndFault(Reply.PRECONDITION_FAILED, text)
        if body.more or not body.settled:
            raise SessionCrash("a management request is one settled transfer")
        properties, request = _read(payload)
        handler: _Handler | None = None
        try:
            handler, parts, query = _route(properties.subject, properties.to, request)
            status, said = _carry_out(handler, session, parts, query, request)
        except _Refused as refusal:
            status, said = refusal.status, str(refusal)
        if self.credit <= _CREDIT // 2:
            self.grant()
        response.respond(self._response(properties.message_id, status, said))
        if handler is _put_token:
            session.connection.renew_credential()

    def _response(self, correlation_id: Any, status: str, body: Any) -> bytes:
        properties = c.Properties(subject=status, correlation_id=correlation_id)
        head = properties.encode(nulls=self.session.choices.writes_trailing_nulls)
        return head + t.encode_section(_APPLICATION, _RESPONSE) + t.encode_section(_VALUE, body)


def _read(payload: bytes) -> tuple[c.Properties, Any]:
    """The properties and the body of a request."""
    properties: c.Properties | None = None
    body: Any = _NOTHING
    offset = 0
    while offset < len(payload):
        section, offset = t.read_value(payload, offset)
        if not isinstance(section, t.Described):
            raise DecodeError("a management request has no sections")
        if section.descriptor == _PROPERTIES:
            properties = c.composite_of(section, c.Properties)
        elif section.descriptor == _VALUE:
            body = section.value
    if properties is None or not isinstance(properties.to, str) or properties.subject is None:
        raise SessionCrash("a management request lacks its path or its method")
    if properties.reply_to != _ME:
        raise SessionCrash(f"the response to a management request goes to {_ME}")
    return properties, body


# --- requests -----------------------------------------------------------------------------------------------


def _route(method: str, path: str, body: Any) -> tuple[_Handler, list[str], str]:
    """The handler of a request, the parts of its path, and its query or else its path.

    Raises:
        _Refused: the path is not percent-encoded.
        EndFault: there is no such request.
    """
    wrong = _ESCAPE.search(path)
    if wrong is not None:
        text = f"failed to normalize URI '{path}': invalid_percent_encoding <<\"{wrong[0]}\">>"
        raise _Refused("400", text)
    where, _, query = path.partition("?")
    parts = where.split("/")[1:]
    handler = _HANDLERS.get((method, *_shape(parts)))
    fits = body is None if method in ("GET", "DELETE") else isinstance(body, dict)
    if handler is None or not (fits or handler is _put_token):
        raise SessionCrash(f"no such management request: {method} {path}")
    return handler, [_decoded(each) for each in parts], query or where


def _carry_out(handler: _Handler, session: Amqp10Session, parts: list[str], query: str, body: Any) -> Answer:
    """Carry out one request.

    Raises:
        _Refused: it is answered with an error.
        AccessRefused: the user lacks a permission, which ends the session.
        EndFault: RabbitMQ crashes.
    """
    try:
        return handler(session, parts, query, body)
    except AccessRefused as problem:
        if " refused for user " in problem.text:
            raise
        raise _Refused("403", problem.text) from None
    except ChannelCrash as crash:
        raise SessionCrash(crash.text) from None
    except ModelError as problem:
        status = "400" if parts[0] == "bindings" else _STATUS.get(problem.condition, "400")
        raise _Refused(status, problem.text) from None


_STATUS: Final = {"not-found": "400", "precondition-failed": "409", "resource-locked": "400"}


def _shape(parts: list[str]) -> tuple[str, ...]:
    """The path without the names in it."""
    if parts[:1] == ["bindings"]:
        return ("bindings",) if len(parts) == 1 else ("bindings", "*")
    return tuple("*" if index == 1 else part for index, part in enumerate(parts))


def _decoded(text: str) -> str:
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _arguments(value: Any) -> dict[str, Any]:
    """Arguments as the model has them. EndFault for what RabbitMQ cannot convert."""
    if not isinstance(value, dict):
        raise SessionCrash("the arguments are no map")
    found: dict[str, Any] = {}
    for name, each in value.items():
        if not isinstance(name, str):
            raise _Refused("400", f"unsupported argument {{{term(name)},{term(each)}}}")
        try:
            kept, converted = header_of(each, drops=False)
        except Unconvertible as problem:
            raise SessionCrash(str(problem)) from None
        if kept:
            found[str(name)] = converted
    return found


def _typed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as a response has them."""
    return {name: annotation_of(each) for name, each in arguments.items()}


def _options(body: Mapping[Any, Any], kind: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request with their defaults; an unknown one, or one of another type, is refused."""
    found = dict(known)
    for name, value in body.items():
        if type(name) is not str or name not in known or type(value) is not type(known[name]):
            if name == "arguments" and type(name) is str:
                raise SessionCrash("the arguments are no map")
            raise _Refused("400", f"bad {kind} {{{term(name)},{term(value)}}}")
        found[name] = _arguments(value) if name == "arguments" else value
    return found


def _check_name(kind: str, name: str) -> None:
    if not name and kind == "queue":
        raise _Refused("400", "declare queue with empty name not allowed")
    if "\r" in name or "\n" in name:
        raise _Refused("400", f"Bad name '{name}': line feed and carriage return characters not allowed")


def _reserved(session: Amqp10Session, kind: str, name: str) -> _Refused:
    host = session.virtual_host.name
    return _Refused("403", f"{kind} '{name}' in vhost '{host}' starts with reserved prefix 'amq.'")


def _check_exchange_name(name: str) -> None:
    if not name:
        raise _Refused("403", "operation not permitted on the default exchange")


def _authorise_further(
    session: Amqp10Session, kind: str, name: str, arguments: Mapping[str, Any], argument: str
) -> None:
    """The rights for an exchange that an argument names."""
    exchange = arguments.get(argument)
    if exchange is None:
        return
    if not isinstance(exchange, str):
        raise _Refused("400", f"invalid type '{type_name(exchange)}' for arg '{argument}'")
    session.authorise("read", kind, name)
    session.authorise("write", "exchange", exchange)


def _queue_view(queue: Queue, durable: bool = True) -> dict[str, Any]:
    """A queue as responses have it; `durable` is what was asked for, which an exclusive one is not here."""
    return {
        "message_count": t.ULong(len(queue.ready)),
        "consumer_count": t.UInt(queue.consumer_count if queue.reports_consumers else 0),
        "name": queue.name,
        "vhost": queue.virtual_host.name,
        "durable": queue.durable or (durable and queue.exclusive_owner is not None),
        "auto_delete": queue.auto_delete,
        "exclusive": queue.exclusive_owner is not None,
        "type": queue.type_name,
        "arguments": _typed(queue.arguments),
        "leader": NODE,
        "replicas": t.Array([NODE], str),
    }


def _put_queue(session: Amqp10Session, parts: list[str], query: str, body: Any) -> Answer:
    name = parts[1]
    options = _options(
        body, "queue property", {"durable": True, "exclusive": False, "auto_delete": False, "arguments": {}}
    )
    _check_name("queue", name)
    queues = session.virtual_host.queues
    if name.startswith("amq."):
        raise _reserved(session, "queue", name)
    session.authorise("configure", "queue", name)
    arguments = options["arguments"]
    there = name in queues
    if not there:
        _authorise_further(session, "queue", name, arguments, "x-dead-letter-exchange")
    declaration = QueueDeclaration(owner=session.connection, **options)
    try:
        queue = queues.declare(name, declaration)
    except ModelError as problem:
        if problem.condition == "precondition-failed" and problem.text.startswith("invalid property"):
            raise _Refused("400", problem.text) from None
        if "queue limit in vhost" in problem.text:
            raise _Refused("403", problem.text) from None
        raise
    return ("200" if there else "201"), _queue_view(queue, options["durable"])


def _authorise_any(session: Amqp10Session, name: str) -> None:
    """One right of a queue is enough to ask for it."""
    either: tuple[Literal["read", "write"], ...] = ("read", "write")
    for action in either:
        with suppress(AccessRefused):
            session.authorise(action, "queue", name)
            return
    session.authorise("configure", "queue", name)


def _is_reply_address(session: Amqp10Session, name: str) -> bool:
    """Whether this is the address of direct replies to a client that still receives them."""
    return session.choices.replies_directly and name in session.virtual_host.reply_addresses


def _get_queue(session: Amqp10Session, parts: list[str], query: str, body: Any) -> Answer:
    _authorise_any(session, parts[1])
    queue = session.virtual_host.queues.get(parts[1])
    if _is_reply_address(session, parts[1]):
        view = _queue_view(ClassicQueue(session.virtual_host, parts[1], QueueDeclaration(auto_delete=True)))
        view |= {"type": "rabbit_volatile_queue", "consumer_count": t.UInt(1)}
        return "200", view | {"replicas": t.Array((), str), "arguments": {}}
    if queue is None:
        raise _Refused("404", f"queue '{parts[1]}' in vhost '{session.virtual_host.name}' not found")
    queue = session.virtual_host.queues.require(parts[1], session.connection)
    return "200", _queue_view(queue)


def _delete_queue(session: Amqp10Session, parts: list[str], query: str, body: Any) -> Answer:
    session.authorise("configure", "queue", parts[1])
    counts: list[int] = []
    session.virtual_host.queues.delete(parts[1], session.connection, confirm=counts.append)
    return "200", {"message_count": t.ULong(counts[0] if counts else 0)}


def _purge(session: Amqp10Session, parts: list[str], query: str, body: Any) -> Answer:
    session.authorise("read", "queue", parts[1])
    if _is_reply_address(session, parts[1]):
        return "200", {"message_count": t.ULong(0)}
    try:
        queue = session.virtual_host.queues.require(parts[1], session.connection)
    except NotFound as problem:
        raise _Refused(session.choices.purging_missing_queue, problem.text) from None
    if queue.keeps_delivered:
        raise _Refused("400", f"purge not supported by {queue.place}")
    return "200", {"message_count": t.ULong(queue.purge())}


def _put_exchange(session: Amqp10Session, parts: list[str], query: str, body: Any) -> Answer:
    name = parts[1]
    options = _options(
        body,
        "exchange property",
        {"type": "direct", "durable": True, "auto_delete": False, "internal": False, "arguments": {}},
    )
    _check_name("exchange", name)
    exchanges = session.virtual_host.exchanges
    try:
        exchanges.type_called(options["type"])
    except ModelError as problem:
        raise _Refused("400", problem.text) from None
    _check_exchange_name(name)
    session.authorise("configure", "exchange", name)
    if name not in exchanges and name.startswith("amq."):
        raise _reserved(session, "exchange", name)
    if name not in exchanges and session.choices.checks_further_rights:
        _authorise_further(session, "exchange", name, options["arguments"], "alternate-exchange")
    exchanges.declare(name, options.pop("type"), **options)
    return "204", None


def _delete_exchange(session: Amqp10Session, parts: list[str], query: str, body: Any) -> Answer:
    name = parts[1]
    _check_exchange_name(name)
    if name.startswith("amq."):
        raise _reserved(session, "exchange", name)
    session.authorise("configure", "exchange", name)
    session.virtual_host.exchanges.delete(name)
    return "204", None


# --- bindings -----------------------------------------------------------------------------------------------


def _destination(session: Amqp10Session, kind: str, name: str) -> Any:
    if kind == "queue":
        return session.virtual_host.queues.require(name, session.connection)
    _check_exchange_name(name)
    return session.virtual_host.exchanges.require(name)


def _check_binding(session: Amqp10Session, source: str, kind: str, name: str, key: str) -> None:
    """What is asked of each request about bindings."""
    _check_exchange_name(source)
    if kind == "exchange":
        _check_exchange_name(name)
    _check_name("binding", source)
    _check_name("binding", name)
    session.authorise("write", kind, name)
    session.authorise("read", "exchange", source)
    session.authorise_topic("read", source, key)


_BINDING_FIELDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("source", "destination_queue", "destination_exchange", "binding_key"), ""),
    "arguments": {},
}


def _post_binding(session: Amqp10Session, parts: list[str], query: str, body: Any) -> Answer:
    said = _options(body, "binding field", _BINDING_FIELDS)
    kind = "queue" if "destination_queue" in body else "exchange"
    missing = {"source", "binding_key", "arguments", f"destination_{kind}"} - body.keys()
    if missing:
        raise SessionCrash(f"a binding lacks {', '.join(sorted(missing))}")
    source = "" if said["source"] == "amq.default" else said["source"]
    name, key = said[f"destination_{kind}"], said["binding_key"]
    _check_binding(session, source, kind, name, key)
    session.virtual_host.bindings.bindable(source)
    destination = _destination(session, kind, name)
    session.virtual_host.bindings.bind(source, destination, key, said["arguments"])
    return "204", None


def _arguments_hash(arguments: Mapping[str, Any]) -> str:
    """What tells bindings apart whose arguments differ: a hash of the table, or nothing without arguments."""
    if not arguments:
        return ""
    table: list[Any] = [
        (name.encode(), Atom(type_name(value)), _hashable(value)) for name, value in sorted(arguments.items())
    ]
    try:
        number = phash2(table, 32)
    except (TypeError, KeyError):
        number = 0
    return urlsafe_b64encode(number.to_bytes(4, "big")).decode().rstrip("=")


def _hashable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _location(binding: Binding) -> str:
    kind = "q" if binding.destination.kind == "queue" else "e"
    return (
        f"/bindings/src={quoted(binding.source.name)};dst{kind}={quoted(binding.destination.name)};"
        f"key={quoted(binding.routing_key)};args={_arguments_hash(binding.arguments)}"
    )


def _shown_query(said: Mapping[str, str]) -> str:
    """The fields of a query as Erlang prints a map, behind the text of the error."""
    before = "missing 'dste' or 'dstq' in query: "
    pairs = [f'<<"{name}">> => <<"{value}">>' for name, value in sorted(said.items())]
    line = f"{before}#{{{','.join(pairs)}}}"
    indented = ",\n" + " " * len(before + "#{")
    return line if len(line) < _LINE else f"{before}#{{{indented.join(pairs)}}}"


def _between(session: Amqp10Session, source: str, kind: str, name: str, key: str) -> list[Binding]:
    exchange = session.virtual_host.exchanges.get(source)
    bindings = [] if exchange is None else exchange.bindings.values()
    wanted = (kind, name, key)
    return [
        each
        for each in bindings
        if (each.destination.kind, each.destination.name, each.routing_key) == wanted
    ]


def _get_bindings(session: Amqp10Session, parts: list[str], query: str, body: Any) -> Answer:
    pairs = [piece.partition("=") for piece in query.split("&")] if "=" in query else []
    said = {name: _decoded(value) for name, _, value in pairs}
    if "src" not in said or "key" not in said:
        raise SessionCrash("a query for bindings lacks src or key")
    kind = "exchange" if "dste" in said else "queue" if "dstq" in said else ""
    if not kind and not session.choices.checks_further_rights:
        raise SessionCrash("a query for bindings lacks dste and dstq")
    if not kind:
        raise _Refused("400", _shown_query(said))
    name = said["dstq" if kind == "queue" else "dste"]
    if session.choices.checks_further_rights:
        _check_binding(session, said["src"], kind, name, said["key"])
    found = _between(session, said["src"], kind, name, said["key"])
    return "200", [
        {
            "source": each.source.name,
            f"destination_{kind}": name,
            "binding_key": each.routing_key,
            "arguments": _typed(each.arguments),
            "location": _location(each),
        }
        for each in found
    ]


def _delete_binding(session: Amqp10Session, parts: list[str], query: str, body: Any) -> Answer:
    segment = query.rpartition("/")[2]
    found = _BINDING.fullmatch(segment)
    if found is None:
        raise _Refused("400", f"bad binding path segment '{segment}'")
    source, name, key = map(_decoded, found.group(1, 3, 4))
    kind = "queue" if found[2] == "q" else "exchange"
    _check_binding(session, source, kind, name, key)
    for each in _between(session, source, kind, name, key):
        if _arguments_hash(each.arguments) == found[5]:
            session.virtual_host.bindings.unbind(
                source, each.destination, key, each.arguments, owner=session.connection
            )
    return "204", None


def _put_token(session: Amqp10Session, parts: list[str], query: str, body: Any) -> Answer:
    """A new credential; permissions are checked after the answer (RabbitMQ: measured on 4.3.6)."""
    if not session.choices.renews_credentials or parts[1:] != ["tokens"] or not isinstance(body, bytes):
        raise SessionCrash("no credential that can be renewed")
    return "204", None


_Handler: TypeAlias = "Callable[[Amqp10Session, list[str], str, Any], Answer]"
_HANDLERS: Final[Mapping[tuple[str, ...], _Handler]] = {
    ("PUT", "queues", "*"): _put_queue,
    ("GET", "queues", "*"): _get_queue,
    ("DELETE", "queues", "*"): _delete_queue,
    ("DELETE", "queues", "*", "messages"): _purge,
    ("PUT", "exchanges", "*"): _put_exchange,
    ("DELETE", "exchanges", "*"): _delete_exchange,
    ("POST", "bindings"): _post_binding,
    ("GET", "bindings"): _get_bindings,
    ("DELETE", "bindings", "*"): _delete_binding,
    ("PUT", "auth", "*"): _put_token,
}
"""Method and path of a request, with names as stars."""
