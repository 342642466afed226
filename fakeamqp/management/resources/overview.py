"""The broker as a whole, and as the one node of its cluster."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING, Any

from fakeamqp.management.access import Role
from fakeamqp.management.counters import CONSUMING, PUBLISHING
from fakeamqp.management.errors import absent
from fakeamqp.management.history import history_of
from fakeamqp.management.listing import columns_of
from fakeamqp.management.resource import NO_CONTENT, Resource
from fakeamqp.model.names import NODE

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.state import BrokerState

_CHURN = (
    "connection_closed",
    "queue_declared",
    "queue_created",
    "connection_created",
    "queue_deleted",
    "channel_created",
    "channel_closed",
)
_RETENTION = {"global": [600, 3600, 28800, 86400], "basic": [600, 3600], "detailed": [600]}
_PLUGIN = "RabbitMQ Management"
_ERLANG = ("erlang_version", "erlang_full_version")


def listeners(call: ApiCall) -> list[dict[str, Any]]:
    """The ports that the broker listens on."""
    management = call.management
    broker = management.broker
    http_host, http_port = management.http_address
    amqp = "amqp/ssl" if management.speaks_tls else "amqp"
    found = [
        (amqp, broker.host, broker.port, {"backlog": 128, "nodelay": True}),
        ("http", http_host, http_port, {"ip": http_host, "port": http_port}),
    ]
    rows: list[dict[str, Any]] = [
        {"node": NODE, "protocol": name, "ip_address": host, "port": port, "socket_opts": options}
        for name, host, port, options in found
    ]
    if call.choices.has_new_checks:
        for row in rows:
            row["tls"] = row["protocol"] == "amqp/ssl"
    return rows


def _contexts(call: ApiCall) -> dict[str, Any]:
    host, port = call.management.http_address
    return {"description": _PLUGIN, "path": "/", "cowboy_opts": "[]", "ip": host, "port": str(port)}


def _exchange_types(state: BrokerState) -> list[dict[str, Any]]:
    names = sorted(state.personality.exchange_types)
    return [{"name": name, "description": "", "enabled": True} for name in names]


def _versions(call: ApiCall, state: BrokerState) -> dict[str, Any]:
    """The versions of RabbitMQ, and of what it runs on, which is not there."""
    versions: dict[str, Any] = {
        "rabbitmq_version": state.personality.version,
        **dict.fromkeys(_ERLANG, ""),
    }
    if call.choices.reports_crypto:
        versions["crypto_lib_version"] = ""
    return versions


def _overview(call: ApiCall) -> object:
    statistics = call.management.statistics
    places = listeners(call)
    visible = frozenset(
        call.management.read(
            lambda state: [name for name in state.virtual_hosts if call.visitor.may_use(name)]
        )
    )
    lengths = call.management.read_each(
        lambda state: [
            queue
            for name in visible
            if name in state.virtual_hosts
            for queue in state.virtual_hosts[name].queues.values()
        ],
        lambda queue: (len(queue.ready), len(queue.unacked), len(queue.subscriptions)),
    )
    ready, unacked, consumers = (sum(each[place] for each in lengths) for place in range(3))

    def question(state: BrokerState) -> dict[str, Any]:
        personality = state.personality
        now, wall = statistics.now(), state.clock.time()
        hosts = [state.virtual_hosts[name] for name in visible if name in state.virtual_hosts]
        mine = [
            each
            for each in state.connections
            if each.virtual_host_name is not None
            and (call.visitor.is_monitor or each.user_name == call.visitor.name)
        ]
        view: dict[str, Any] = {
            "management_version": personality.version,
            "rates_mode": "basic",
            "sample_retention_policies": _RETENTION,
            "exchange_types": _exchange_types(state),
            "product_version": personality.version,
            "product_name": personality.product,
            **_versions(call, state),
            "cluster_name": state.cluster_name,
            "cluster_tags": {},
            "node_tags": {},
            "disable_stats": False,
            "default_queue_type": "classic",
            "is_op_policy_updating_enabled": True,
            "enable_queue_totals": False,
            "message_stats": {},
            "churn_rates": statistics.churn.shown(_CHURN, now, wall),
            "queue_totals": {},
            "object_totals": {
                "channels": sum(len(each.open_channels) for each in mine),
                "consumers": consumers,
                "exchanges": sum(len(host.exchanges) for host in hosts),
                "queues": len(lengths),
                "connections": len(mine),
            },
            "statistics_db_event_queue": 0,
            "node": NODE,
        }
        if call.choices.reports_crypto:
            view["require_definition_json_extension"] = False
        if statistics.whole:
            view["message_stats"] = statistics.whole.shown(
                (*PUBLISHING, *CONSUMING, "disk_reads", "disk_writes"),
                now,
                wall,
                history_of(call, "msg_rates"),
            )
        if lengths:
            for name, count in (
                ("messages", ready + unacked),
                ("messages_ready", ready),
                ("messages_unacknowledged", unacked),
            ):
                view["queue_totals"][name] = count
                view["queue_totals"][f"{name}_details"] = {"rate": 0.0}
        if not call.visitor.is_monitor:
            # Who sees a part only is told less (measured).
            del view["node"], view["object_totals"]["consumers"]
        else:
            view["listeners"] = places
            view["contexts"] = [{"ssl_opts": [], "node": NODE, **_contexts(call)}]
        return view

    view = call.management.read(question)
    wanted = call.query.get("columns")
    if not wanted:
        return view
    # Of a column with a dot the first part counts here (measured).
    names = {each.partition(".")[0] for each in wanted.split(",")}
    return {name: value for name, value in view.items() if name in names}


# --- nodes ------------------------------------------------------------------------------------------------

_RATED = (
    "gc_num",
    "gc_bytes_reclaimed",
    "context_switches",
    "io_read_count",
    "io_read_bytes",
    "io_write_count",
    "io_write_bytes",
    "io_sync_count",
    "io_seek_count",
    "io_reopen_count",
    "mnesia_ram_tx_count",
    "mnesia_disk_tx_count",
    "msg_store_read_count",
    "msg_store_write_count",
    "queue_index_write_count",
    "queue_index_read_count",
)
"""Counts of Erlang and of RabbitMQ's disk, which are 0 here."""
_TIMES = ("io_read_avg_time", "io_write_avg_time", "io_sync_avg_time", "io_seek_avg_time")
_ERLANG_MEMORY = (
    "connection_readers",
    "connection_writers",
    "connection_channels",
    "stream_queue_procs",
    "stream_queue_replica_reader_procs",
    "stream_queue_coordinator_procs",
    "queue_procs",
    "quorum_queue_procs",
    "quorum_queue_dlx_procs",
    "plugins",
    "metadata_store",
    "metrics",
    "mgmt_db",
    "quorum_ets",
    "mnesia",
    "metadata_store_ets",
    "other_ets",
    "msg_index",
    "code",
    "atom",
    "other_system",
    "allocated_unused",
    "reserved_unallocated",
)
"""What RabbitMQ tells of Erlang's memory."""
_COLLECTED = (
    "connection_closed",
    "channel_closed",
    "consumer_deleted",
    "exchange_deleted",
    "queue_deleted",
    "vhost_deleted",
    "node_node_deleted",
    "channel_consumer_deleted",
)


def _descriptors() -> tuple[int, int]:
    """How many descriptors this process has open, and may have; 0 where the system does not say."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    except ImportError:
        most = 0
    try:
        used = len(os.listdir("/proc/self/fd"))
    except OSError:
        used = 0
    return used, most


def _memory(call: ApiCall) -> int:
    """Bytes of messages and connections; those of the trace would take some milliseconds to add up."""
    return call.management.read(
        lambda state: sum(
            each.octets for each in (state.memory.messages, state.memory.connections, state.memory.unfinished)
        )
    )


def _node(call: ApiCall) -> dict[str, Any]:
    statistics = call.management.statistics
    used, most = _descriptors()
    free = shutil.disk_usage(tempfile.gettempdir()).free
    memory = _memory(call)
    context = _contexts(call)

    def question(state: BrokerState) -> dict[str, Any]:
        now, wall = statistics.now(), state.clock.time()
        view: dict[str, Any] = {
            "partitions": [],
            "os_pid": str(os.getpid()),
            "fd_total": most,
            "sockets_total": 0,
            "mem_limit": state.memory.limit or 0,
            "mem_alarm": state.memory.alarm,
            "disk_free_limit": 0,
            "disk_free_alarm": False,
            "proc_total": 0,
            "rates_mode": "basic",
            "uptime": int((now - call.management.began) * 1000),
            "run_queue": 0,
            "processors": os.cpu_count() or 1,
            "exchange_types": _exchange_types(state),
            "auth_mechanisms": [
                {"name": name, "description": "", "enabled": True} for name in state.personality.mechanisms
            ],
            "applications": [
                {"name": "fakeamqp", "description": "", "version": state.personality.version},
                {"name": "python", "description": "", "version": ".".join(map(str, sys.version_info[:3]))},
            ],
            "contexts": [context],
            "log_files": [],
            "db_dir": "",
            "config_files": [],
            "net_ticktime": 60,
            "enabled_plugins": ["rabbitmq_management"],
            "mem_calculation_strategy": "allocated",
            "ra_open_file_metrics": {"ra_log_wal": 0, "ra_log_segment_writer": 0},
            "name": NODE,
            "running": True,
            "type": "disc",
            "being_drained": False,
            "cluster_links": [],
            "metrics_gc_queue_length": dict.fromkeys(_COLLECTED, 0),
            **statistics.churn.shown(_CHURN, now, wall),
        }
        if call.choices.reports_crypto:
            view |= _versions(call, state)
        return view

    view = call.management.read(question)
    numbers: dict[str, float] = {
        "mem_used": memory,
        "fd_used": used,
        "sockets_used": 0,
        "proc_used": 0,
        "disk_free": free,
        **dict.fromkeys(_RATED, 0),
        **dict.fromkeys(_TIMES, 0.0),
    }
    for name, number in numbers.items():
        view[name] = number
        view[f"{name}_details"] = {"rate": 0.0}
    return view


def _known(call: ApiCall) -> None:
    if call.names["name"] != NODE:
        raise absent()


def _get_node(call: ApiCall) -> object:
    _known(call)
    return columns_of(call, _node(call))


def _node_memory(call: ApiCall) -> object:
    """The broker's own memory; that of Erlang is 0."""
    _known(call)
    view = call.management.read(
        lambda state: {
            **dict.fromkeys(_ERLANG_MEMORY, 0),
            "connection_other": state.memory.connections.octets,
            "binary": state.memory.messages.octets,
            "other_proc": state.memory.unfinished.octets,
            "strategy": "allocated",
        }
    )
    total = _memory(call)
    return {"memory": {**view, "total": {"erlang": total, "rss": total, "allocated": total}}}


def _attempts(call: ApiCall) -> object:
    if call.names["node"] != NODE:
        raise absent()
    succeeded, failed = call.management.logins
    return [
        {
            "protocol": "http",
            "auth_attempts": succeeded + failed,
            "auth_attempts_failed": failed,
            "auth_attempts_succeeded": succeeded,
        }
    ]


def _reset_statistics(call: ApiCall) -> object:
    with call.management.engine:
        call.management.statistics.clear()
    return NO_CONTENT


RESOURCES = (
    Resource("overview", get=_overview),
    Resource("nodes", get=lambda call: [columns_of(call, _node(call))], role=Role.MONITORING),
    Resource("nodes/{name}", get=_get_node, role=Role.MONITORING),
    Resource("nodes/{name}/memory", get=_node_memory, role=Role.MONITORING),
    Resource("auth/attempts/{node}", get=_attempts, role=Role.MONITORING),
    Resource("extensions", get=lambda _: [{"javascript": "dispatcher.js"}]),
    Resource("reset", delete=_reset_statistics, role=Role.ADMINISTRATOR),
    Resource("reset/{node}", delete=_reset_statistics, role=Role.ADMINISTRATOR),
)
