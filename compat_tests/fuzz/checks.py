"""What must hold of a broker whatever its clients have done."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.connection import Connection
from fakeamqp.model.queues import Queue
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c
from fakeamqp.protocols.amqp_1_0.codec.composites import Close, Detach, End
from fakeamqp.protocols.negotiation import Negotiation

__all__ = [
    "active_timers",
    "connection_closes",
    "gone",
    "inconsistencies",
    "left_behind",
    "serves_others",
    "settled_fate",
]


def settled_fate(client: Any) -> str:
    """What has become of a connection; anything but one of the fates there are is a failure.

    A connection of 0-10 whose session has ended is "failed", and one of 1.0 that has an ended session or a
    detached link.
    """
    connection = client.connection
    if connection.aborted:
        return "aborted"
    if connection.finished:
        return "finished"
    endpoint = connection_of(connection)
    if endpoint is None:
        return "waiting for a header"
    if endpoint.state.name == "CLOSED":  # and waits for its client to end the transport
        assert endpoint not in client.server.state.connections
        return "finished"
    if endpoint.state.name == "CLOSING":
        closes = connection_closes(client)
        assert closes, "a connection is closing, yet its client was not told"
        if connection.protocol == "1-0":
            assert closes[-1].error.condition and closes[-1].error.description, closes
            assert client.inbox[-1].what is closes[-1], "more after the close"
            return "closing"
        assert closes[-1].reply_code >= 300 and closes[-1].reply_text, f"a close without a reason: {closes}"
        if isinstance(closes[-1], c.ConnectionClose):
            assert closes[-1].reply_code in (320, 402, 501), closes
            return "closing"
        after = client.inbox[max(n for n, each in enumerate(client.inbox) if each.method is closes[-1]) + 1 :]
        assert all(each.method and each.method.NAME == "connection.close-ok" for each in after), (
            f"more after the close: {after}"
        )
        return "closing"
    assert endpoint in client.server.state.connections
    if connection.protocol == "0-10":
        failed = [each.what for each in client.inbox if isinstance(each.what, x.ExecutionException)]
        assert all(each.error_code and each.description for each in failed), failed
        return "failed" if failed else "open"
    if connection.protocol == "1-0":
        ended = [each.what for each in client.inbox if isinstance(each.what, (End, Detach))]
        failed = [each.error for each in ended if each.error is not None]
        assert all(each.condition for each in failed), failed
        return "failed" if failed else "open"
    assert endpoint.state.name in ("STARTING", "SECURING", "TUNING", "TUNED", "OPEN")
    return "open"


def connection_closes(client: Any) -> list[Any]:
    """What the broker has said to end a connection."""
    said = (each.what if hasattr(each, "what") else each.method for each in client.inbox)
    names = ("connection.close", "close")
    return [each for each in said if getattr(each, "NAME", None) in names and not is_answer(each)]


def is_answer(close: Any) -> bool:
    """Whether it is the close of 1.0 that answers the client's."""
    return isinstance(close, Close) and close.error is None


def connection_of(connection: Connection) -> Any:
    """The connection of its protocol, or None before the protocol header."""
    return None if isinstance(connection, Negotiation) else connection


def serves_others(server: Server, queue: str = "of the next client") -> None:
    """The next client declares, publishes and gets as if nothing had happened."""
    client = server.client()
    name = queue if server.state.personality.name != "spec" else queue.replace(" ", "-")
    client.declare(name, exclusive=True)
    client.publish(b"well", routing_key=name)
    got = client.get(name)
    assert got is not None and got.body == b"well"
    client.send(m.BasicAck(delivery_tag=got.method.delivery_tag))
    client.send(m.ConnectionClose(reply_code=200), 0)
    client.expect(m.ConnectionCloseOk, 0)
    client.expect_end_after_close()


def queues(state: BrokerState) -> Iterator[Queue]:
    for virtual_host in state.virtual_hosts.values():
        yield from virtual_host.queues.values()


def active_timers(state: BrokerState) -> list[str]:
    """What all timers still to run are for."""
    return [timer.words for timer in state.timers.pending()]


def gone(client: Client) -> None:
    """The transport is lost. Of what the client has done in distributed transactions nothing comes."""
    client.drop()
    assert client.closed
    for virtual_host in client.server.state.virtual_hosts.values():
        virtual_host.branches.abandon(prepared=True)


def left_behind(state: BrokerState, connection: Connection) -> list[str]:
    """What a connection that has gone still holds: nothing, that is."""
    owner = connection_of(connection)
    found = [f"timer {label!r}" for label in active_timers(state) if connection.name in label]
    if owner is None:
        return found
    found += ["the connection itself"] * (owner in state.connections)
    channels = owner.sessions if hasattr(owner, "sessions") else owner.channels
    found += [f"channel {number}" for number in channels]
    found += [f"{each} at its gate" for each in owner.gate.subscriptions]
    for queue in queues(state):
        found += [f"exclusive {queue}"] * (queue.exclusive_owner is owner)
        found += [f"{each}" for each in queue.subscriptions if each.owner is owner]
        found += [f"{each} in turn" for each in queue.rotation if each.owner is owner]
        found += [f"{each}" for each in queue.unacked if each.owner is owner]
    for virtual_host in state.virtual_hosts.values():
        addresses = virtual_host.reply_addresses.values()
        found += [f"reply address {each.name}" for each in addresses if each.subscription.owner is owner]
    return found


def inconsistencies(state: BrokerState) -> list[str]:
    """Where the parts of the model contradict each other."""
    found: list[str] = []
    for virtual_host in state.virtual_hosts.values():
        known = {id(each) for each in (*virtual_host.queues.values(), *virtual_host.exchanges.values())}
        for exchange in virtual_host.exchanges.values():
            for binding in exchange.bindings.values():
                if binding not in binding.destination.incoming:
                    found.append(f"{binding} is unknown to its destination")
                if id(binding.destination) not in known:
                    found.append(f"{binding} leads to what is no more")
        for each in (*virtual_host.queues.values(), *virtual_host.exchanges.values()):
            for binding in each.incoming:
                if binding.identity not in binding.source.bindings or id(binding.source) not in known:
                    found.append(f"{binding} comes from what is no more")
        for queue in virtual_host.queues.values():
            if queue.type_name == "classic":
                found += _queue_inconsistencies(queue)
    named = {queue.name for queue in queues(state)}
    for label in active_timers(state):
        if label.startswith("q '") and label.split("'")[1] not in named:
            found.append(f"timer of a deleted queue: {label}")
    return found


def _queue_inconsistencies(queue: Queue) -> Iterator[str]:
    ready = list(queue.ready)
    if queue.deleted:
        yield f"{queue} is deleted and still there"
    if len(ready) != len(queue.ready):
        yield f"{queue} counts {len(queue.ready)} and holds {len(ready)}"
    messages = [queued.message for queued in ready]
    if sum(len(each.body) + each.further_bytes for each in messages) != queue.ready_bytes:
        yield f"{queue} counts its bytes wrong"
    for earlier, later in pairwise(ready):
        if earlier.message.priority <= later.message.priority and earlier.position >= later.position:
            yield f"{queue} is out of order"
    for delivery in queue.unacked:
        if delivery.settled:
            yield f"{delivery} is settled and still outstanding"
    for subscription in queue.rotation:
        if subscription not in queue.subscriptions or not subscription.active:
            yield f"{subscription} takes its turn after its end"
        if (
            ready
            and not queue.selects
            and all(limit.admits(ready[0].message) for limit in subscription.limits)
        ):
            yield f"{queue} waits although {subscription} could take its head"
