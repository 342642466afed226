"""Queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.management.acting import OWNER, authorise, queue_of
from fakeamqp.management.counters import CONSUMING
from fakeamqp.management.errors import absent, bad_request
from fakeamqp.management.history import history_of
from fakeamqp.management.listing import columns_of, listed
from fakeamqp.management.resource import CREATED, NO_CONTENT, Resource, check_name
from fakeamqp.management.resources.consumers import consumer_view
from fakeamqp.management.values import jsonable
from fakeamqp.model.names import NODE
from fakeamqp.model.queues import QueueDeclaration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.state import BrokerState

_HIGHEST_NORMAL = 4
_COUNTED = ("publish", *CONSUMING)

UNKNOWN_GARBAGE_COLLECTION = dict.fromkeys(
    ("fullsweep_after", "max_heap_size", "min_bin_vheap_size", "min_heap_size", "minor_gcs"), -1
)
"""Facts of an Erlang process, as RabbitMQ writes them where it does not know them (measured for streams)."""

_HELD = "messages held"
"""The key of a view under which the messages stand until `_finished` has added up their bytes."""


def _lengths(queue: Queue) -> dict[str, Any]:
    """How many messages a queue holds, and which: their bytes are added up without the lock."""
    count, held = len(queue.ready), len(queue.unacked)
    view: dict[str, Any] = {
        "messages": count + held,
        "messages_ready": count,
        "messages_unacknowledged": held,
    }
    if queue.type_name != "stream":
        view[_HELD] = list(queue.ready), [each.queued for each in queue.unacked]
    return view


def _finished(view: dict[str, Any]) -> dict[str, Any]:
    """The view with the bytes of its messages, which need no lock since messages do not change."""
    held = view.pop(_HELD, None)
    if held is None:
        return view
    ready, unacked = ([each.message for each in part] for part in held)
    octets, held_octets = (sum(len(each.body) for each in part) for part in (ready, unacked))
    persistent = [each for each in (*ready, *unacked) if view["durable"] and each.persistent]
    view["message_bytes"] = view["message_bytes_ram"] = octets + held_octets
    view["message_bytes_ready"] = octets
    view["message_bytes_unacknowledged"] = held_octets
    view["message_bytes_persistent"] = sum(len(each.body) for each in persistent)
    view["messages_persistent"] = len(persistent)
    view["messages_ram"] = len(ready) + len(unacked)
    view["memory"] = octets + held_octets
    if view["type"] == "quorum":
        view["messages_ready_returned"] = sum(each.returns > 0 for each in held[0])
        if "messages_ready_high" in view:
            high = sum(each.priority > _HIGHEST_NORMAL for each in ready)
            view["messages_ready_high"], view["messages_ready_normal"] = high, len(ready) - high
    return view


def _type_view(call: ApiCall, queue: Queue) -> dict[str, Any]:
    """What only queues of this type show."""
    count, held = len(queue.ready), len(queue.unacked)
    members = {"leader": NODE, "members": [NODE], "online": [NODE]}
    if queue.type_name == "classic":
        view: dict[str, Any] = {
            "messages_ready_ram": count,
            "messages_unacknowledged_ram": held,
            "storage_version": 2,
        }
        if call.choices.counts_paged_out:
            view["messages_paged_out"] = view["message_bytes_paged_out"] = 0
        return view
    if queue.type_name == "stream":
        view = {"readers": {NODE: len(queue.subscriptions)}, "segments": 1, **members}
        if call.choices.has_internal_queues:
            view["first_timestamp"] = 0
        return view
    limit = queue.options.delivery_limit
    if limit is None:
        limit = queue.virtual_host.state.personality.quorum.delivery_limit
    view = {
        **members,
        "delivery_limit": -1 if limit is None else limit,
        "message_bytes_dlx": 0,
        "messages_dlx": 0,
        "messages_ready_returned": 0,
        "open_files": {NODE: 0},
        "publishers": 0,
    }
    if call.choices.counts_priorities:
        view["delayed_retry"] = "disabled"
        view["messages_active_priorities"] = 0
        view["messages_by_priority"] = {}
        view["messages_delayed"] = queue.parked_count
    else:
        view["messages_ready_high"] = view["messages_ready_normal"] = 0
    return view


def _static_view(call: ApiCall, queue: Queue) -> dict[str, Any]:
    """What a queue was declared with, and its policies."""
    definition: dict[str, Any] = {}
    if queue.policy is not None or queue.operator_policy is not None:
        from fakeamqp.model.policies import effective_definition

        definition = dict(effective_definition(queue.policy, queue.operator_policy))
    view: dict[str, Any] = {
        "arguments": jsonable(queue.arguments),
        "auto_delete": queue.auto_delete,
        "durable": queue.durable,
        "effective_policy_definition": jsonable(definition),
        "exclusive": queue.exclusive_owner is not None,
        "name": queue.name,
        "node": NODE,
        "operator_policy": None if queue.operator_policy is None else queue.operator_policy.name,
        "policy": None if queue.policy is None else queue.policy.name,
        "state": "running",
        "type": queue.type_name,
        "vhost": queue.virtual_host.name,
    }
    if call.choices.has_internal_queues:
        view["internal"] = view["internal_owner"] = False
    owner = queue.exclusive_owner
    peer = getattr(owner, "peer", None)
    if peer is not None:
        view["owner_pid_details"] = {
            "name": getattr(owner, "name", ""),
            "peer_host": peer.host,
            "peer_port": peer.port,
        }
    return view


def _view(call: ApiCall, queue: Queue) -> dict[str, Any]:
    """A queue as lists show it."""
    if call.flag("disable_stats"):
        view = _static_view(call, queue)
        if not call.choices.has_internal_queues:
            for name in ("effective_policy_definition", "operator_policy", "policy"):
                del view[name]
        return view
    state = queue.virtual_host.state
    view = {**_static_view(call, queue), **_lengths(queue), **_type_view(call, queue)}
    for name in ("messages", "messages_ready", "messages_unacknowledged"):
        view[f"{name}_details"] = {"rate": 0.0}
    view["consumers"] = len(queue.subscriptions)
    if queue.type_name != "stream":
        # The share of time in which consumers could take a message; here that of this moment.
        takes = bool(queue.subscriptions) and not len(queue.ready)
        view["consumer_capacity"] = view["consumer_utilisation"] = 1.0 if takes else 0
        for name, consumer in (
            ("exclusive_consumer_tag", queue.exclusive_subscription),
            ("single_active_consumer_tag", queue.single_active),
        ):
            view[name] = None if consumer is None else consumer.tag
    view["memory"] = 0
    view["reductions"] = 0
    view["reductions_details"] = {"rate": 0.0}
    statistics = call.management.statistics
    counts = statistics.queues.get((queue.virtual_host.name, queue.name))
    if counts is not None:
        view["message_stats"] = counts.shown(
            _COUNTED, statistics.now(), state.clock.time(), history_of(call, "msg_rates")
        )
    return view


def _detailed_view(call: ApiCall, queue: Queue) -> dict[str, Any]:
    view = _view(call, queue)
    if call.flag("disable_stats"):
        return view
    if queue.type_name == "quorum":
        view.pop("exclusive_consumer_tag")
    if queue.type_name == "classic":
        head = next(iter(queue.ready), None)
        view["head_message_timestamp"] = None if head is None else head.message.properties.timestamp
    return {
        **view,
        "consumer_details": [consumer_view(each) for each in queue.subscriptions],
        "deliveries": [],
        "garbage_collection": UNKNOWN_GARBAGE_COLLECTION,
        "incoming": [],
    }


def _list(call: ApiCall) -> object:
    def queues(state: BrokerState) -> Iterable[Queue]:
        return [queue for host in call.virtual_hosts(state) for queue in host.queues.values()]

    def view(queue: Queue) -> dict[str, Any] | None:
        if queue.deleted:
            return None
        return {name: value for name, value in _view(call, queue).items() if value is not None}

    rows = call.management.read_each(queues, view)
    return listed(call, [_finished(row) for row in rows])


def _get(call: ApiCall) -> object:
    view = call.management.read(lambda state: _detailed_view(call, queue_of(call, state)))
    return columns_of(call, _finished(view))


def _put(call: ApiCall) -> object:
    name = call.names["name"]
    check_name("queue", name)
    node = call.json.get("node")
    if node is not None and node != NODE:
        raise bad_request(call.choices.unknown_node.format(node))
    declaration = QueueDeclaration(
        owner=OWNER,
        durable=call.boolean("durable"),
        auto_delete=call.boolean("auto_delete"),
        arguments=call.arguments,
    )

    def change(state: BrokerState) -> bool:
        host = call.virtual_host(state)
        authorise(call, state, "configure", name)
        dead_letters = call.arguments.get("x-dead-letter-exchange")
        if isinstance(dead_letters, str) and name not in host.queues:
            authorise(call, state, "read", name)
            authorise(call, state, "write", dead_letters)
        new = name not in host.queues
        host.queues.declare(name, declaration)
        return new

    return CREATED if call.management.change(change) else NO_CONTENT


def _delete(call: ApiCall) -> object:
    def change(state: BrokerState) -> None:
        queue = queue_of(call, state)
        authorise(call, state, "configure", queue.name)
        queue.virtual_host.queues.delete(
            queue.name, OWNER, if_unused=call.flag("if-unused"), if_empty=call.flag("if-empty")
        )

    call.management.change(change)
    return NO_CONTENT


def _purge(call: ApiCall) -> object:
    def change(state: BrokerState) -> None:
        queue = queue_of(call, state)
        authorise(call, state, "read", queue.name)
        queue.virtual_host.queues.require(queue.name, OWNER).purge()

    call.management.change(change)
    return NO_CONTENT


def _act(call: ApiCall) -> object:
    """Mirrors are not there, so no action is (measured)."""
    call.management.read(lambda state: queue_of(call, state))
    raise bad_request(["unknown", call.fields("action")[0]])


def _rebalance(call: ApiCall) -> object:
    """A broker of one node has nothing to move."""
    if call.names["what"] != "queues":
        raise absent()
    return NO_CONTENT


RESOURCES = (
    Resource("queues", get=_list),
    Resource("queues/detailed", get=_list),
    Resource("queues/{vhost}", get=_list),
    Resource("queues/{vhost}/{name}", get=_get, put=_put, delete=_delete),
    Resource("queues/{vhost}/{name}/contents", delete=_purge),
    Resource("queues/{vhost}/{name}/actions", post=_act),
    Resource("rebalance/{what}", post=_rebalance),
)
