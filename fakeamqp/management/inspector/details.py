"""Messages of one queue, a part at a time, and everything about one queue, exchange or connection."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from fakeamqp.inspect.messages import aside_view, queued_view, unacked_view
from fakeamqp.inspect.topology import find_exchange, find_queue
from fakeamqp.trace.html.rows import body_form, bounded, fields_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fakeamqp.inspect.messages import ContentView, MessageView
    from fakeamqp.management.inspector.inspector import Inspector
    from fakeamqp.model.exchanges.exchange import Binding
    from fakeamqp.model.policies import Policy
    from fakeamqp.model.queues import Queue

_MOST_MESSAGES = 200
_PREVIEW = 2048
_MOST_BODY = 262_144
_MOST_BINDINGS = 500
_SEARCHED = 20_000
"""Messages among which one is looked for that has left its place."""


# --- messages ---------------------------------------------------------------------------------------------


def messages(
    inspector: Inspector, virtual_host: str, queue: str, start: int = 0, count: int = 100
) -> dict[str, Any]:
    """Some messages of a queue: ready ones in delivery order, then unacked ones, then those set aside.

    Returns:
        `total` and `start`, and `messages`: each with a `key` by which `message` finds it, and the first
        2 KiB of its body.

    Raises:
        NoSuchQueue, NoSuchVirtualHost: it does not exist.
    """
    with inspector.engine.look():
        parts = _parts(find_queue(inspector.state, queue, virtual_host))
        total = sum(size for _, size, _ in parts)
        start = max(0, min(start, total))
        left, place = min(count, _MOST_MESSAGES), start
        taken = []
        for stored, size, view in parts:
            # What stands before is skipped without a step of Python for each message.
            some = list(islice(stored, min(place, size), min(place + left, size)))
            taken += [(_key(each), _number(each), view(each)) for each in some]
            left -= len(some)
            place = max(0, place - size)
    return {
        "total": total,
        "start": start,
        "messages": [
            {"key": key, "message": number, **_message(view, _PREVIEW)} for key, number, view in taken
        ],
    }


def message(inspector: Inspector, virtual_host: str, queue: str, at: int, key: str) -> dict[str, Any] | None:
    """One message with the first 256 KiB of its body; None if it is no longer in the queue.

    Args:
        inspector: the inspector.
        virtual_host: of the queue.
        queue: its name.
        at: the place at which it was.
        key: by which `messages` named it.

    Raises:
        NoSuchQueue, NoSuchVirtualHost: the queue does not exist.
    """
    with inspector.engine.look():
        parts = _parts(find_queue(inspector.state, queue, virtual_host))
        ready, _, view_of_ready = parts[0]
        near = ((each, view_of_ready) for each in islice(ready, max(0, at), at + 1))
        others = ((each, view) for stored, _, view in parts for each in islice(stored, _SEARCHED))
        for each, view in chain(near, others):
            if _key(each) == key:
                number, found = _number(each), view(each)
                break
        else:
            return None
    return {"key": key, "message": number, **_message(found, _MOST_BODY)}


def _parts(queue: Queue) -> list[tuple[Iterable[Any], int, Callable[[Any], MessageView]]]:
    """The stores of a queue with their sizes, and what makes a view of what they store."""
    now = queue.virtual_host.now()
    time = queue.virtual_host.state.clock.time()
    ready = (queue.ready, len(queue.ready), lambda queued: queued_view(queued, now))
    if queue.keeps_delivered:
        return [ready]
    parked = queue.parked_messages()
    return [
        ready,
        (queue.unacked, len(queue.unacked), lambda delivery: unacked_view(delivery, now, time)),
        (parked, len(parked), aside_view),
    ]


def _key(stored: Any) -> str:
    """The key of what a queue stores. A message keeps it while a client holds it."""
    queued = getattr(stored, "queued", stored)
    offset = getattr(queued, "offset", None)
    return f"{id(queued)}" if offset is None else f"offset {offset}"


def _number(stored: Any) -> int:
    """The number of the message in what a queue stores."""
    queued = getattr(stored, "queued", stored)
    number: int = getattr(queued, "message", queued).number
    return number


def content(view: ContentView, most: int) -> dict[str, Any]:
    """The address, the properties and the beginning of the body of any message."""
    properties = {name: value for name, value in view.properties.items() if name != "headers"}
    body = view.body
    return {
        "exchange": view.exchange,
        "routing_key": view.routing_key,
        "sections": bounded(fields_of(view.sections.items())),
        "properties": bounded(fields_of(properties.items())),
        "headers": bounded(fields_of(view.headers.items())),
        "body": body_form(body[:most], len(body)),
        "shown": min(most, len(body)),
        "size": len(body),
    }


def _message(view: MessageView, most: int) -> dict[str, Any]:
    return {
        **content(view, most),
        "state": view.state,
        "redelivered": view.redelivered,
        "expires_in": view.expires_in,
        "offset": view.offset,
        "held_for": view.held_for,
        "consumer": view.consumer_tag,
        "connection": view.connection,
        "channel": view.channel,
    }


# --- one object -------------------------------------------------------------------------------------------


def queue_details(inspector: Inspector, virtual_host: str, name: str) -> dict[str, Any]:
    """The declaration of a queue, its policies and its bindings.

    Raises:
        NoSuchQueue, NoSuchVirtualHost: it does not exist.
    """
    with inspector.engine.look():
        queue = find_queue(inspector.state, name, virtual_host)
        arguments = dict(queue.arguments)
        policies = queue.policy, queue.operator_policy
        owner = getattr(queue.exclusive_owner, "name", None)
        bindings = [(each.source.name, each) for each in islice(queue.incoming, _MOST_BINDINGS)]
        more = len(queue.incoming) - len(bindings)
    owned = {"exclusive to": owner} if isinstance(owner, str) else {}
    return _declared({**owned, **_set_by(policies)}, arguments, bindings, more)


def exchange_details(inspector: Inspector, virtual_host: str, name: str) -> dict[str, Any]:
    """The declaration of an exchange, its policies and its bindings.

    Raises:
        NoSuchExchange, NoSuchVirtualHost: it does not exist.
    """
    with inspector.engine.look():
        exchange = find_exchange(inspector.state, name, virtual_host)
        arguments = dict(exchange.arguments)
        policies = exchange.policy, exchange.operator_policy
        all_bindings = exchange.bindings
        some = islice(all_bindings.values(), _MOST_BINDINGS)
        bindings = [(f"{each.destination.kind} {each.destination.name}", each) for each in some]
        more = len(all_bindings) - len(bindings)
    return _declared(_set_by(policies), arguments, bindings, more)


def _set_by(policies: tuple[Policy | None, Policy | None]) -> dict[str, Any]:
    """The definitions of a policy and of an operator policy, each under the name of its policy."""
    return {
        word: {policy.name: dict(policy.definition)}
        for word, policy in zip(("policy", "operator policy"), policies, strict=True)
        if policy is not None
    }


def _declared(
    facts: Mapping[str, Any], arguments: Mapping[str, Any], bindings: list[tuple[str, Binding]], more: int
) -> dict[str, Any]:
    """The answer about a queue or an exchange. Bindings come with what stands at their other end."""
    return {
        "facts": bounded(fields_of(facts.items())),
        "arguments": bounded(fields_of(arguments.items())),
        "bindings": [
            [other, binding.routing_key, bounded(fields_of(binding.arguments.items()))]
            for other, binding in bindings
        ],
        "more": more,
    }


def connection_details(inspector: Inspector, name: str) -> dict[str, Any] | None:
    """The client properties of a connection; None if it is closed."""
    with inspector.engine.look():
        for connection in inspector.state.connections:
            if connection.name == name:
                properties = dict(connection.client_properties)
                break
        else:
            return None
    return {"properties": bounded(fields_of(properties.items()))}
