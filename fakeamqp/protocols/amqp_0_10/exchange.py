"""Class exchange: declare, delete, query, bind, unbind, bound.

Clients of all versions share exchanges, queues and bindings. This module decides what 0-10 does differently,
before it calls the model. All commands raise AccessRefused for what the user may not do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.model.arguments.exchange_arguments import EXCHANGE_ARGUMENTS
from fakeamqp.model.exchanges import EXCHANGE_TYPES
from fakeamqp.protocols.amqp_0_10.codec import commands, structs
from fakeamqp.protocols.amqp_0_10.entities import (
    authorise_alternate,
    authorise_asking,
    bad_arguments,
    check_alternate,
    find_exchange,
    find_queue,
    plain,
    refuse_unknown_arguments,
)
from fakeamqp.protocols.amqp_0_10.properties import carried
from fakeamqp.protocols.amqp_0_10.replies import SessionFault

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession

_PREDECLARED = ("amq.",)
_ARGUMENTS = frozenset(row.name for row in EXCHANGE_ARGUMENTS)
"""The arguments of exchange.declare that mean something to one exchange type or another."""


# --- exchanges ---------------------------------------------------------------------------------------


def declare(session: ServerSession, command: commands.ExchangeDeclare) -> None:
    """Create an exchange, or confirm that one of this type exists.

    An existing exchange keeps its other flags and its arguments (exchange.declare/*-sticky).

    Raises:
        SessionFault: it has no name (invalid-argument), is not there but should be (not-found), has a
            reserved name, another type or another alternate exchange (not-allowed); the type or the alternate
            exchange does not exist (not-found); an argument is wrong (invalid-argument, not-implemented).
    """
    name = _named(command.exchange)
    if command.passive:
        authorise_asking(session, "exchange", name)
        _check_same(session, find_exchange(session, name), command)
        return
    if name.startswith(session.choices.reserved_prefixes):
        raise SessionFault("not-allowed", f"exchange name '{name}' is reserved", "exchange")
    session.authorise("configure", "exchange", name)
    arguments = plain(command.arguments)
    refuse_unknown_arguments(session, arguments, _ARGUMENTS)
    kind = command.type
    if kind not in EXCHANGE_TYPES or kind not in session.personality.exchange_types:
        # exchange.declare/type-exchange-type-not-found
        raise SessionFault("not-found", f"there is no exchange type '{kind or ''}'", "type")
    existing = session.virtual_host.exchanges.get(name)
    if existing is not None:
        _check_same(session, existing, command)
        return
    alternate = command.alternate_exchange or None
    check_alternate(session, alternate)
    authorise_alternate(session, "exchange", name, alternate, arguments.get("alternate-exchange"))
    with bad_arguments():
        session.virtual_host.exchanges.create(
            name,
            kind,
            durable=command.durable,
            auto_delete=command.auto_delete,
            arguments=arguments,
            alternate_exchange=alternate,
        )


def _named(name: str | None) -> str:
    """The name, which the default exchange does not have (exchange/default-access)."""
    if not name:
        raise SessionFault("invalid-argument", "the default exchange cannot be named here", "exchange")
    return name


def _check_same(session: ServerSession, existing: Exchange, command: commands.ExchangeDeclare) -> None:
    """Refuse an exchange of another type (exchange.declare/type-typed) or with another alternate exchange."""
    if command.type and command.type != existing.type_name:
        raise SessionFault(
            "not-allowed",
            f"exchange '{existing.name}' is of type '{existing.type_name}', not '{command.type}'",
            "type",
        )
    check_alternate(session, command.alternate_exchange, existing)


def delete(session: ServerSession, command: commands.ExchangeDelete) -> None:
    """Delete an exchange with its bindings (exchange.delete/cancels-bindings).

    Raises:
        SessionFault: it has no name (invalid-argument), is not there (not-found), is the broker's own or an
            alternate exchange (not-allowed), or has bindings and must not (precondition-failed).
    """
    name = _named(command.exchange)
    session.authorise("configure", "exchange", name)
    exchange = find_exchange(session, name)
    if name.startswith(_PREDECLARED):
        raise SessionFault("not-allowed", f"exchange '{name}' is the broker's own", "exchange")
    if session.virtual_host.exchanges.used_as_alternate(name):
        # exchange.delete/exchange-used-as-alternate
        raise SessionFault("not-allowed", f"exchange '{name}' is an alternate exchange", "exchange")
    if command.if_unused and exchange.bindings:
        raise SessionFault("precondition-failed", f"exchange '{name}' has bindings", "if_unused")
    session.virtual_host.exchanges.remove(exchange)


def query(session: ServerSession, command: commands.ExchangeQuery) -> structs.ExchangeQueryResult:
    """Describe an exchange, or say that it does not exist; no name is the default one (exchange.query/*)."""
    name = command.name or ""
    authorise_asking(session, "exchange", name)
    exchange = session.virtual_host.exchanges.get(name)
    if exchange is None:
        return structs.ExchangeQueryResult(not_found=True)
    return structs.ExchangeQueryResult(
        type=exchange.type_name,
        durable=exchange.durable,
        not_found=False,
        arguments=carried(exchange.arguments),
    )


# --- bindings ----------------------------------------------------------------------------------------


def bind(session: ServerSession, command: commands.ExchangeBind) -> None:
    """Bind a queue to an exchange by a key; an existing binding by that key does not change.

    The arguments of the first binding remain (exchange.bind/duplicates). The queue must not be exclusive to
    another session (queue.declare/exclusive-in-use).
    """
    exchange, queue, key = _ends(session, command)
    arguments = plain(command.arguments)
    if exchange.bindings_between(queue, key):
        return
    if exchange.chooser.type_name != "headers":
        refuse_unknown_arguments(session, arguments, ())  # Only headers exchanges route by arguments.
    elif "x-match" not in arguments and session.choices.headers_bindings_name_match:
        raise SessionFault("internal-error", "a headers exchange needs the argument x-match", "arguments")
    with bad_arguments():
        session.virtual_host.bindings.bind(exchange.name, queue, key, arguments)


def unbind(session: ServerSession, command: commands.ExchangeUnbind) -> None:
    """Remove all bindings of the queue by that key, also those with other arguments."""
    exchange, queue, key = _ends(session, command)
    bound = exchange.bindings_between(queue, key)
    if not bound and session.choices.unbinding_unknown_key_is_an_error:
        # exchange.unbind/binding-key-non-existent-binding-key
        text = f"queue '{queue.name}' is not bound to exchange '{exchange.name}' by '{key}'"
        raise SessionFault("not-found", text, "binding_key")
    for binding in bound:
        session.virtual_host.bindings.unbind(exchange.name, queue, key, binding.arguments, owner=session)


def _ends(
    session: ServerSession, command: commands.ExchangeBind | commands.ExchangeUnbind
) -> tuple[Exchange, Queue, str]:
    """The queue, the exchange and the key of a bind or unbind, after all permissions are checked.

    An absent key is the empty one, unlike in 0-9-1, where it could be the queue's name.
    """
    exchange, queue, key = _named(command.exchange), command.queue or "", command.binding_key or ""
    if not queue:
        raise SessionFault("invalid-argument", "a binding needs the name of a queue", "queue")
    session.authorise("write", "queue", queue)
    session.authorise("read", "exchange", exchange)
    found = session.virtual_host.exchanges.get(exchange)
    if found is not None and found.type_name == "topic":
        session.access.check_topic(session.user, session.virtual_host.name, "read", exchange, key)
    source = find_exchange(session, exchange)
    find_queue(session, queue)
    return source, session.virtual_host.queues.require(queue, session), key


def bound(session: ServerSession, command: commands.ExchangeBound) -> structs.ExchangeBoundResult:
    """Tell whether a binding exists; absent and empty fields match any binding (exchange.bound/wildcards).

    Where no binding matches all fields, each field is matched by itself against all bindings; where each one
    matches, key and arguments are matched against the bindings of the queue. So no flag is set if, and only
    if, there is such a binding.
    """
    name, queue_name = command.exchange or "", command.queue or None
    authorise_asking(session, "exchange", name)
    if queue_name is not None:
        authorise_asking(session, "queue", queue_name)
    exchange = session.virtual_host.exchanges.get(name)
    queue = None if queue_name is None else session.virtual_host.queues.get(queue_name)
    result = structs.ExchangeBoundResult(
        exchange_not_found=exchange is None, queue_not_found=queue_name is not None and queue is None
    )
    if exchange is not None and not result.queue_not_found:
        _compare(exchange, queue, command.binding_key or None, plain(command.arguments) or None, result)
    return result


def _compare(
    exchange: Exchange,
    queue: Queue | None,
    key: str | None,
    arguments: dict[str, Any] | None,
    result: structs.ExchangeBoundResult,
) -> None:
    if exchange.is_bound(queue, key, arguments):
        return
    result.queue_not_matched = queue is not None and not exchange.is_bound(queue)
    result.key_not_matched = key is not None and not exchange.is_bound(None, key)
    result.args_not_matched = arguments is not None and not exchange.is_bound(None, None, arguments)
    if result.queue_not_matched or result.key_not_matched or result.args_not_matched:
        return
    result.key_not_matched = key is not None and not exchange.is_bound(queue, key)
    result.args_not_matched = arguments is not None and not exchange.is_bound(queue, None, arguments)
    if not result.key_not_matched and not result.args_not_matched:
        result.key_not_matched, result.args_not_matched = key is not None, arguments is not None
