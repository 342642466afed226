"""The broker as a whole, and who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.management.resource import Resource
from fakeamqp.model.names import NODE

if TYPE_CHECKING:
    from fakeamqp.management.resource import Call
    from fakeamqp.model.state import BrokerState

__all__ = ["RESOURCES"]


def _overview(call: Call) -> object:
    def question(state: BrokerState) -> dict[str, object]:
        hosts = [each for name, each in state.virtual_hosts.items() if call.visitor.may_see(name)]
        queues = [queue for host in hosts for queue in host.queues.values()]
        ready = sum(len(queue.ready) for queue in queues)
        unacked = sum(len(queue.unacked) for queue in queues)
        return {
            "management_version": state.personality.version,
            "rabbitmq_version": state.personality.version,
            "product_version": state.personality.version,
            "product_name": state.personality.product,
            "cluster_name": state.cluster_name,
            "node": NODE,
            "queue_totals": {
                "messages": ready + unacked,
                "messages_ready": ready,
                "messages_unacknowledged": unacked,
            },
            "object_totals": {
                "channels": sum(len(each.open_channels) for each in state.connections),
                "connections": len(state.connections),
                "consumers": sum(len(queue.subscriptions) for queue in queues),
                "exchanges": sum(len(host.exchanges) for host in hosts),
                "queues": len(queues),
            },
        }

    return call.management.read(question)


def _whoami(call: Call) -> object:
    return {"name": call.visitor.name, "tags": list(call.visitor.tags)}


RESOURCES = (
    Resource("/api/overview", get=_overview),
    Resource("/api/whoami", get=_whoami),
)
