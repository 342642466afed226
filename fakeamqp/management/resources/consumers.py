"""Consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.management.listing import listed
from fakeamqp.management.resource import Resource
from fakeamqp.management.values import jsonable
from fakeamqp.model.names import NODE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.state import BrokerState


def consumer_view(subscription: Subscription) -> dict[str, Any]:
    """One consumer."""
    owner: Any = subscription.owner
    connection = getattr(owner, "connection", None) or owner
    number = getattr(subscription.group, "number", 0)
    peer = getattr(connection, "peer", None)
    queue = subscription.queue
    prefetch = min((each.message_limit for each in subscription.credits if each.message_limit), default=0)
    blocked = any(not each.open for each in subscription.credits)
    waits = queue.options.single_active_consumer and subscription is not queue.single_active
    timeout = queue.acknowledgement_timeout or queue.virtual_host.state.personality.consumer_timeout
    name = getattr(connection, "name", "")
    return {
        "arguments": jsonable(subscription.arguments),
        "ack_required": not subscription.no_ack,
        "active": not waits,
        "activity_status": "waiting" if waits else "blocked" if blocked else "up",
        "channel_details": {}
        if hasattr(connection, "session_facts")  # AMQP 1.0 has no channels.
        else {
            "connection_name": name,
            "name": f"{name} ({number})",
            "node": NODE,
            "number": number,
            "peer_host": "" if peer is None else peer.host,
            "peer_port": 0 if peer is None else peer.port,
            "user": getattr(connection, "user_name", None) or "",
        },
        "consumer_tag": subscription.tag,
        "consumer_timeout": int(timeout * 1000) if timeout else "undefined",
        "exclusive": subscription.exclusive,
        "prefetch_count": prefetch,
        "queue": {"name": queue.name, "vhost": queue.virtual_host.name},
    }


def _list(call: ApiCall) -> object:
    def consumers(state: BrokerState) -> Iterable[Subscription]:
        queues = [queue for host in call.virtual_hosts(state) for queue in host.queues.values()]
        return [each for queue in queues for each in queue.subscriptions]

    rows = call.management.read_each(consumers, consumer_view)
    if call.management.choices.lists_missing_details:
        rows = [{**row, "channel_details": row["channel_details"] or []} for row in rows]
    return listed(call, rows, ("queue.vhost", "queue.name", "consumer_tag"))


RESOURCES = (
    Resource("consumers", get=_list),
    Resource("consumers/{vhost}", get=_list),
)
