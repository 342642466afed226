"""Connections and channels of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.management.counters import CONSUMING, PUBLISHING
from fakeamqp.management.errors import absent, bad_request, not_authorised
from fakeamqp.management.history import history_of
from fakeamqp.management.listing import columns_of, listed
from fakeamqp.management.resource import NO_CONTENT, InVirtualHost, Resource
from fakeamqp.management.resources.consumers import consumer_view
from fakeamqp.management.resources.queues import UNKNOWN_GARBAGE_COLLECTION
from fakeamqp.management.values import jsonable
from fakeamqp.model.names import NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.state import BrokerState

_CLOSED_VIA = "CONNECTION_FORCED - Closed via management plugin"
_CERTIFICATE = ("peer_cert_issuer", "peer_cert_subject", "peer_cert_validity")
_TLS = ("ssl_cipher", "ssl_hash", "ssl_key_exchange", "ssl_protocol")


def _may_see(call: ApiCall, connection: Any) -> bool:
    visitor = call.visitor
    return visitor.is_monitor or connection.user_name == visitor.name


def _has_sessions(connection: Any) -> bool:
    """Whether it is one of AMQP 1.0, whose sessions are no channels here."""
    return hasattr(connection, "session_facts")


def _connection_view(call: ApiCall, connection: Any) -> dict[str, Any]:
    statistics = call.management.statistics
    now = statistics.now()
    wall = connection.broker.clock.time()
    counts = statistics.connections[connection.name]
    peer = connection.peer
    blocked = connection.blocked_reason is not None
    view: dict[str, Any] = {
        "auth_mechanism": connection.login.mechanism or "",
        "channel_max": getattr(connection, "channel_max", 0),
        "channels": len(connection.open_channels),
        "client_properties": jsonable(connection.client_properties),
        "connected_at": int(statistics.connected_at.get(connection.name, wall) * 1000),
        "frame_max": getattr(connection, "frame_max", 0),
        "garbage_collection": UNKNOWN_GARBAGE_COLLECTION,
        "host": peer.server_host,
        "name": connection.name,
        "node": NODE,
        "peer_host": peer.host,
        "peer_port": peer.port,
        "port": peer.server_port,
        "protocol": f"AMQP {connection.protocol}",
        "recv_cnt": counts.total("recv_cnt"),
        "reductions": 0,
        "reductions_details": {"rate": 0.0},
        "send_cnt": counts.total("send_cnt"),
        "send_pend": 1 if connection.unsent else 0,
        "ssl": peer.tls,
        "state": "blocked" if blocked else "running",
        "timeout": connection.heartbeat,
        "type": "network",
        "user": connection.user_name or "",
        "user_who_performed_action": connection.user_name or "",
        "vhost": connection.virtual_host_name or "",
        **counts.shown(("recv_oct", "send_oct"), now, wall, history_of(call, "data_rates")),
        **dict.fromkeys(_CERTIFICATE),
        **dict.fromkeys(_TLS),
    }
    if call.choices.has_new_checks:
        view["peer_cert_serial_number"] = None
    if call.choices.has_new_checks and _has_sessions(connection):
        view["container_id"] = connection.container_id
    named = connection.client_properties.get("connection_name")
    if isinstance(named, str):
        view["user_provided_name"] = named
    return view


def _connections(call: ApiCall, wanted: Callable[[Any], bool] = lambda _: True) -> list[dict[str, Any]]:
    def connections(state: BrokerState) -> Iterable[Any]:
        return [
            each
            for each in state.connections
            if each.virtual_host_name is not None and _may_see(call, each) and wanted(each)
        ]

    return call.management.read_each(connections, lambda each: _connection_view(call, each))


def _list(call: ApiCall) -> object:
    return listed(call, _connections(call), ("name",))


def _list_of_vhost(call: ApiCall) -> object:
    name = call.names["vhost"]
    return listed(call, _connections(call, lambda each: bool(each.virtual_host_name == name)), ("name",))


def _found(call: ApiCall, state: BrokerState) -> Any:
    for connection in state.connections:
        if connection.name == call.names["name"] and connection.virtual_host_name is not None:
            if not _may_see(call, connection):
                raise not_authorised("User not authorised to access object")
            return connection
    raise absent()


def _get(call: ApiCall) -> object:
    view = call.management.read(lambda state: _connection_view(call, _found(call, state)))
    # A single connection has texts where a list has null (measured).
    return columns_of(call, {name: "" if value is None else value for name, value in view.items()})


def _close(call: ApiCall) -> object:
    reason = call.request.headers.get("x-reason")

    def close(state: BrokerState) -> None:
        connection = _found(call, state)
        _close_one(connection, reason)

    call.management.change(close)
    return NO_CONTENT


def _close_one(connection: Any, reason: str | None) -> None:
    text = _CLOSED_VIA if not reason else f"CONNECTION_FORCED - {reason}"
    connection.close_by_operator(320, text)


def _list_of_user(call: ApiCall) -> object:
    name = call.names["user"]

    def question(state: BrokerState) -> list[dict[str, Any]]:
        return [
            {"name": each.name, "vhost": each.virtual_host_name, "user": each.user_name, "node": NODE}
            for each in state.connections
            if each.user_name == name and each.virtual_host_name is not None and _may_see(call, each)
        ]

    return call.management.read(question)


def _close_of_user(call: ApiCall) -> object:
    name = call.names["user"]
    reason = call.request.headers.get("x-reason")

    def close(state: BrokerState) -> None:
        for connection in list(state.connections):
            if connection.user_name == name and _may_see(call, connection):
                _close_one(connection, reason)

    call.management.change(close)
    return NO_CONTENT


# --- channels ---------------------------------------------------------------------------------------------


def _channel_view(call: ApiCall, connection: Any, channel: Any) -> dict[str, Any]:
    peer = connection.peer
    statistics = call.management.statistics
    counts = statistics.channels.get((connection.name, channel.number))
    shared = 0 if channel.credit is None else channel.credit.message_limit
    confirms = channel.mode == "confirm"
    view: dict[str, Any] = {
        "acks_uncommitted": 0,
        "confirm": confirms,
        "connection_details": {"name": connection.name, "peer_host": peer.host, "peer_port": peer.port},
        "consumer_count": len(channel.consumers),
        "garbage_collection": UNKNOWN_GARBAGE_COLLECTION,
        "messages_unacknowledged": sum(len(ledger.outstanding) for ledger in channel.ledgers),
        "messages_uncommitted": 0,
        "messages_unconfirmed": len(getattr(channel, "unconfirmed", ())),
        "name": f"{connection.name} ({channel.number})",
        "node": NODE,
        "number": channel.number,
        "pending_raft_commands": 0,
        "prefetch_count": channel.prefetch[0],
        "reductions": 0,
        "reductions_details": {"rate": 0.0},
        "state": "running",
        "transactional": channel.mode == "tx",
        "user": connection.user_name or "",
        "user_who_performed_action": connection.user_name or "",
        "vhost": connection.virtual_host_name or "",
    }
    if shared:
        view["global_prefetch_count"] = shared
    if call.choices.has_new_checks:
        view["cached_segments"] = 0
    if counts:
        now, wall = statistics.now(), connection.broker.clock.time()
        history = history_of(call, "msg_rates")
        stats: dict[str, Any] = {}
        if counts.total("publish"):
            stats |= counts.shown(PUBLISHING, now, wall, history)
        if any(counts.total(name) for name in CONSUMING):
            stats |= counts.shown(CONSUMING, now, wall, history)
        if stats:
            view["message_stats"] = stats
    return view


def _channels(call: ApiCall, wanted: Callable[[Any], bool] = lambda _: True) -> list[dict[str, Any]]:
    def channels(state: BrokerState) -> Iterable[tuple[Any, Any]]:
        return [
            (connection, channel)
            for connection in state.connections
            if connection.virtual_host_name is not None and _may_see(call, connection) and wanted(connection)
            if not _has_sessions(connection)
            for channel in connection.open_channels
        ]

    return call.management.read_each(channels, lambda pair: _channel_view(call, *pair))


def _list_channels(call: ApiCall) -> object:
    return listed(call, _channels(call), ("name",))


def _list_channels_of_vhost(call: ApiCall) -> object:
    name = call.names["vhost"]
    return listed(call, _channels(call, lambda each: bool(each.virtual_host_name == name)), ("name",))


def _list_channels_of_connection(call: ApiCall) -> object:
    call.management.read(lambda state: _found(call, state))
    name = call.names["name"]
    return listed(call, _channels(call, lambda each: bool(each.name == name)), ("number",))


def _sessions(call: ApiCall) -> object:
    def sessions(state: BrokerState) -> list[dict[str, Any]]:
        connection = _found(call, state)
        if not _has_sessions(connection):
            raise bad_request("connection does not use AMQP 1.0")
        facts: list[dict[str, Any]] = connection.session_facts()
        return facts

    return call.management.read(sessions)


def _get_channel(call: ApiCall) -> object:
    def question(state: BrokerState) -> dict[str, Any]:
        for connection in state.connections:
            for channel in connection.open_channels:
                if f"{connection.name} ({channel.number})" == call.names["name"]:
                    if not _may_see(call, connection):
                        raise not_authorised("User not authorised to access object")
                    return {
                        **_channel_view(call, connection, channel),
                        "consumer_details": [consumer_view(each) for each in channel.consumers.values()],
                        "deliveries": [],
                        "publishes": [],
                    }
        raise absent()

    return columns_of(call, call.management.read(question))


RESOURCES = (
    Resource("connections", get=_list),
    Resource("connections/username/{user}", get=_list_of_user, delete=_close_of_user),
    Resource("connections/{name}", get=_get, delete=_close),
    Resource("connections/{name}/channels", get=_list_channels_of_connection),
    Resource("connections/{name}/sessions", get=_sessions, exists=lambda choices: choices.has_new_checks),
    Resource("vhosts/{vhost}/connections", get=_list_of_vhost, vhost=InVirtualHost.SEE),
    Resource("vhosts/{vhost}/channels", get=_list_channels_of_vhost, vhost=InVirtualHost.SEE),
    Resource("channels", get=_list_channels),
    Resource("channels/{name}", get=_get_channel),
)
