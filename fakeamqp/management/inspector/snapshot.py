"""The whole broker as plain values, and what differs between two snapshots.

A snapshot has sections: "queues", "exchanges" and others map keys to rows, "broker" and "time" are one row
each. Keys are opaque to the page. Rows are dicts of JSON values; the names are those of the views in
`fakeamqp.inspect`.

The lock is held for at most `_SLICE` queues at a time, so a snapshot of a large broker is not of one instant.
What never changes (names, bindings) is read without the lock from objects that were collected under it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from fakeamqp.management.control.routes import FaultView
from fakeamqp.management.control.schemas import to_json
from fakeamqp.management.inspector.keys import key_of
from fakeamqp.management.inspector.outcomes import histories

if TYPE_CHECKING:
    from fakeamqp.management.inspector.inspector import Inspector
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.exchanges.exchange import Binding
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import ClientConnection
    from fakeamqp.model.virtual_host import VirtualHost

Row: TypeAlias = "dict[str, Any]"
Snapshot: TypeAlias = "dict[str, dict[str, Any]]"

T = TypeVar("T")

_SLICE = 200
_MOST_TIMERS = 200
_MOST_KEYS = 20
"""Routing keys of bindings between the same two that are told; the rest is counted."""
_MOST_UNACKED = 5000
"""Unacked messages of a queue above which they are not counted by consumer."""
_SINGLE = ("broker", "time")
_ASKED = ("message_ttl", "expires", "max_priority", "max_length", "max_length_bytes")
"""What a queue's arguments or policies ask for, as far as lists of queues show it."""


def take(inspector: Inspector) -> Snapshot:
    """The broker as it is now."""
    engine, state = inspector.engine, inspector.state
    with engine.look():
        broker, time = _broker(inspector), _time(inspector)
        hosts = list(state.virtual_hosts.values())
        queues = [queue for host in hosts for queue in host.queues.values()]
        exchanges = [exchange for host in hosts for exchange in host.exchanges.values()]
        connections = list(state.connections)
    snapshot: Snapshot = {
        "broker": broker,
        "time": time,
        "exchanges": {},
        "bindings": {},
        "queues": {},
        "consumers": {},
        "connections": {},
        "faults": _faults(inspector),
    }
    for some in _slices(queues):
        with engine.look():
            for queue in some:
                if not queue.deleted:
                    snapshot["queues"][key_of(queue.virtual_host.name, queue.name)] = _queue(queue)
                    snapshot["consumers"].update(_consumers(queue))
    for each in _slices(exchanges):
        with engine.look():
            found = [(one, _exchange(one), list(one.bindings.values())) for one in each]
        for exchange, row, bindings in found:
            snapshot["exchanges"][key_of(exchange.virtual_host.name, exchange.name)] = row
            snapshot["bindings"].update(_bindings(exchange.virtual_host, bindings))
    for clients in _slices(connections):
        with engine.look():
            snapshot["connections"].update({each.name: _connection(each, inspector) for each in clients})
    snapshot["flows"] = inspector.flows.counted(engine, state)
    snapshot["rates"] = inspector.flows.rates(engine, state, inspector.control.endpoint._recorder)
    return snapshot


def changes(before: Snapshot, now: Snapshot) -> dict[str, Any]:
    """What has changed since `before`, by section: rows that are new or differ, and keys that are gone."""
    found: dict[str, Any] = {}
    for section, rows in now.items():
        old = before.get(section, {})
        if section in _SINGLE:
            if rows != old:
                found[section] = rows
            continue
        different = {key: row for key, row in rows.items() if old.get(key) != row}
        gone = [key for key in old if key not in rows]
        if different or gone:
            found[section] = {"set": different, "gone": gone}
    return found


def _slices(items: Sequence[T]) -> Iterator[Iterable[T]]:
    for start in range(0, len(items), _SLICE):
        yield items[start : start + _SLICE]


# --- the broker and its time: inside the engine ---------------------------------------------------------


def _broker(inspector: Inspector) -> Row:
    broker, state = inspector.control.endpoint, inspector.state
    return {
        "impossible": sorted(broker._impossible),
        "personality": state.personality.name,
        "behind": ", ".join(map(str, getattr(broker, "_targets", ()))),
        "address": None if broker._address is None else f"{broker._address[0]}:{broker._address[1]}",
        "running": broker.running,
        "virtual_hosts": list(state.virtual_hosts),
        "blocked": state.blocked_reason,
        "trace": broker._recorder is not None,
        "held": None if inspector.held is None or inspector.held.is_set() else inspector.title,
        "failure": None if inspector.failure is None else inspector.failure.to_json(),
        "histories": {word: kept.count for word, kept in histories(state).items()},
    }


def _time(inspector: Inspector) -> Row:
    """The clock. The page lets real time pass itself, so the time of a real clock is told by `began` only."""
    engine, state = inspector.engine, inspector.state
    stepped = engine.stepped
    now = state.clock.now()
    timers = [
        [round(timer.due, 6), timer.words, timer.housekeeping]
        for timer in islice(state.timers.pending(), _MOST_TIMERS)
    ]
    return {
        "mode": getattr(inspector.control.endpoint, "_mode", "real"),
        "offset": round(state.clock.time() - now, 3),
        "now": None if stepped is None else round(now, 6),
        "elapsed": None if stepped is None else round(stepped.elapsed, 6),
        "rate": 1.0 if stepped is None else stepped.rate,
        "timers": timers,
        "more": max(0, len(state.timers) - len(timers)),
    }


def _connection(connection: ClientConnection, inspector: Inspector) -> Row:
    recorder = inspector.control.endpoint._recorder
    properties = connection.client_properties
    product, version, name = (properties.get(each) for each in ("product", "version", "connection_name"))
    channels = [
        {
            "number": channel.number,
            "consumers": len(channel.consumers),
            "unacked": sum(len(ledger.outstanding) for ledger in channel.ledgers),
            "prefetch": channel.prefetch[0]
            or (0 if channel.credit is None else channel.credit.message_limit),
            "mode": channel.mode,
            "links": [
                [link.link_name, link.role, link.address, link.credit_left, link.delivery_count]
                for link in getattr(channel, "links", ())
            ],
        }
        for channel in connection.open_channels
    ]
    return {
        "name": connection.name,
        "alias": (recorder.alias(connection.name) if recorder is not None else None) or "",
        "client": " ".join(each for each in (product, version) if isinstance(each, str)),
        "called": name if isinstance(name, str) else "",
        "user": connection.user_name,
        "virtual_host": connection.virtual_host_name,
        "protocol": connection.protocol,
        "heartbeat": connection.heartbeat,
        "blocked": connection.blocked_reason,
        "unsent": connection.unsent,
        "channels": channels,
    }


# --- topology: inside the engine ------------------------------------------------------------------------


def _queue(queue: Queue) -> Row:
    options = queue.options
    row: Row = {
        "name": queue.name,
        "virtual_host": queue.virtual_host.name,
        "type": queue.type_name,
        "durable": queue.durable,
        "exclusive": queue.exclusive_owner is not None,
        "auto_delete": queue.auto_delete,
        "ready": len(queue.ready),
        "unacked": len(queue.unacked),
        "set_aside": queue.parked_count,
        "consumers": len(queue.subscriptions),
    }
    if queue.policy is not None:
        row["policy"] = queue.policy.name
    for name in _ASKED:
        if (value := getattr(options, name)) is not None:
            row[name] = value
    if options.single_active_consumer:
        row["single_active_consumer"] = True
    if options.dead_letter_exchange is not None:
        row["dead_letter_exchange"] = options.dead_letter_exchange
        row["dead_letter_routing_key"] = options.dead_letter_routing_key
    return row


def _consumers(queue: Queue) -> Iterator[tuple[str, Row]]:
    if not queue.subscriptions:
        return
    held = Counter(map(_holder, queue.unacked)) if len(queue.unacked) <= _MOST_UNACKED else None
    for subscription in queue.subscriptions:
        connection = getattr(subscription.owner, "name", None)
        channel = getattr(subscription.group, "number", None)
        key = f"{key_of(queue.virtual_host.name, queue.name)} {connection} {channel} {subscription.tag}"
        windows = [credit.message_limit for credit in subscription.credits if credit.message_limit]
        yield (
            key,
            {
                "tag": subscription.tag,
                "queue": key_of(queue.virtual_host.name, queue.name),
                "connection": connection if isinstance(connection, str) else None,
                "channel": channel if isinstance(channel, int) else None,
                "no_ack": subscription.no_ack,
                "exclusive": subscription.exclusive,
                "prefetch": min(windows, default=0),
                "unacked": None if held is None else held[id(subscription)],
            },
        )


def _holder(delivery: Any) -> int:
    return id(delivery.holder)


def _exchange(exchange: Exchange) -> Row:
    row: Row = {
        "name": exchange.name,
        "virtual_host": exchange.virtual_host.name,
        "type": exchange.type_name,
        "durable": exchange.durable,
        "internal": exchange.internal,
        "delayed": exchange.virtual_host.delays.count(exchange.name),
    }
    if exchange.alternate_exchange is not None:
        row["alternate_exchange"] = exchange.alternate_exchange
    return row


# --- without the lock -----------------------------------------------------------------------------------


def _bindings(host: VirtualHost, bindings: Iterable[Binding]) -> dict[str, Row]:
    """The bindings of one exchange, one row for all to the same destination."""
    rows: dict[str, Row] = {}
    for binding in bindings:
        destination = binding.destination
        kind = destination.kind
        source, target = key_of(host.name, binding.source.name), key_of(host.name, destination.name)
        row = rows.get(key := f"{kind} {len(source)} {source} {target}")
        if row is None:
            row = rows[key] = {"source": source, "kind": kind, "destination": target, "keys": [], "count": 0}
        row["count"] += 1
        if len(row["keys"]) < _MOST_KEYS:
            row["keys"].append(_said(binding))
    return rows


def _said(binding: Binding) -> str:
    """The routing key and the arguments of a binding in one line."""
    arguments = ", ".join(
        f"{name}={value!r}" for name, value in islice(binding.arguments.items(), _MOST_KEYS)
    )
    return " ".join(each for each in (binding.routing_key, arguments) if each)


def _faults(inspector: Inspector) -> dict[str, Row]:
    """The faults in force."""
    control = inspector.control
    views = (FaultView.of(control, each) for each in control.faults() if not each.removed)
    return {str(view.id): to_json(view) for view in views}
