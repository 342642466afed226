"""The types of the arguments of `Faults.on`: written by `python -m compat_tests.tools.fault_names`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

__all__ = ["Conditions", "MethodName", "ProtocolName"]

ProtocolName: TypeAlias = Literal["0-9-1", "0-10", "0-9", "0-8"]
"""The name of a protocol."""

MethodName: TypeAlias = Literal[
    "heartbeat",
    "connection.heartbeat",
    "confirm",
    "*",
    "*.accept",
    "*.ack",
    "*.acquire",
    "*.append",
    "*.attach",
    "*.attached",
    "*.bind",
    "*.bind-ok",
    "*.blocked",
    "*.bound",
    "*.bound-ok",
    "*.cancel",
    "*.cancel-ok",
    "*.checkpoint",
    "*.close",
    "*.close-ok",
    "*.command-point",
    "*.commit",
    "*.commit-ok",
    "*.completed",
    "*.confirmed",
    "*.consume",
    "*.consume-ok",
    "*.declare",
    "*.declare-ok",
    "*.delete",
    "*.delete-ok",
    "*.deliver",
    "*.detach",
    "*.detached",
    "*.empty",
    "*.end",
    "*.exception",
    "*.expected",
    "*.flow",
    "*.flow-ok",
    "*.flush",
    "*.forget",
    "*.gap",
    "*.get",
    "*.get-empty",
    "*.get-ok",
    "*.get-timeout",
    "*.known-completed",
    "*.nack",
    "*.offset",
    "*.ok",
    "*.open",
    "*.open-ok",
    "*.ping",
    "*.pong",
    "*.prepare",
    "*.publish",
    "*.purge",
    "*.purge-ok",
    "*.qos",
    "*.qos-ok",
    "*.query",
    "*.recover",
    "*.recover-async",
    "*.recover-ok",
    "*.recover-sync",
    "*.recover-sync-ok",
    "*.redirect",
    "*.reject",
    "*.release",
    "*.request",
    "*.request-ok",
    "*.request-timeout",
    "*.result",
    "*.resume",
    "*.return",
    "*.rollback",
    "*.rollback-ok",
    "*.secure",
    "*.secure-ok",
    "*.select",
    "*.select-ok",
    "*.set-flow-mode",
    "*.set-timeout",
    "*.stage",
    "*.start",
    "*.start-ok",
    "*.stop",
    "*.subscribe",
    "*.sync",
    "*.timeout",
    "*.transfer",
    "*.tune",
    "*.tune-ok",
    "*.unbind",
    "*.unbind-ok",
    "*.unblocked",
    "*.update-secret",
    "*.update-secret-ok",
    "access.*",
    "basic.*",
    "channel.*",
    "confirm.*",
    "connection.*",
    "dtx.*",
    "exchange.*",
    "execution.*",
    "file.*",
    "message.*",
    "queue.*",
    "session.*",
    "stream.*",
    "tunnel.*",
    "tx.*",
    "access.request",
    "access.request-ok",
    "basic.ack",
    "basic.cancel",
    "basic.cancel-ok",
    "basic.consume",
    "basic.consume-ok",
    "basic.deliver",
    "basic.get",
    "basic.get-empty",
    "basic.get-ok",
    "basic.nack",
    "basic.publish",
    "basic.qos",
    "basic.qos-ok",
    "basic.recover",
    "basic.recover-async",
    "basic.recover-ok",
    "basic.recover-sync",
    "basic.recover-sync-ok",
    "basic.reject",
    "basic.return",
    "channel.close",
    "channel.close-ok",
    "channel.flow",
    "channel.flow-ok",
    "channel.ok",
    "channel.open",
    "channel.open-ok",
    "channel.ping",
    "channel.pong",
    "channel.resume",
    "confirm.select",
    "confirm.select-ok",
    "connection.blocked",
    "connection.close",
    "connection.close-ok",
    "connection.open",
    "connection.open-ok",
    "connection.redirect",
    "connection.secure",
    "connection.secure-ok",
    "connection.start",
    "connection.start-ok",
    "connection.tune",
    "connection.tune-ok",
    "connection.unblocked",
    "connection.update-secret",
    "connection.update-secret-ok",
    "dtx.commit",
    "dtx.end",
    "dtx.forget",
    "dtx.get-timeout",
    "dtx.prepare",
    "dtx.recover",
    "dtx.rollback",
    "dtx.select",
    "dtx.select-ok",
    "dtx.set-timeout",
    "dtx.start",
    "dtx.start-ok",
    "exchange.bind",
    "exchange.bind-ok",
    "exchange.bound",
    "exchange.bound-ok",
    "exchange.declare",
    "exchange.declare-ok",
    "exchange.delete",
    "exchange.delete-ok",
    "exchange.query",
    "exchange.unbind",
    "exchange.unbind-ok",
    "execution.exception",
    "execution.result",
    "execution.sync",
    "file.ack",
    "file.cancel",
    "file.cancel-ok",
    "file.consume",
    "file.consume-ok",
    "file.deliver",
    "file.open",
    "file.open-ok",
    "file.publish",
    "file.qos",
    "file.qos-ok",
    "file.reject",
    "file.return",
    "file.stage",
    "message.accept",
    "message.acquire",
    "message.append",
    "message.cancel",
    "message.checkpoint",
    "message.close",
    "message.consume",
    "message.empty",
    "message.flow",
    "message.flush",
    "message.get",
    "message.offset",
    "message.ok",
    "message.open",
    "message.qos",
    "message.recover",
    "message.reject",
    "message.release",
    "message.resume",
    "message.set-flow-mode",
    "message.stop",
    "message.subscribe",
    "message.transfer",
    "queue.bind",
    "queue.bind-ok",
    "queue.declare",
    "queue.declare-ok",
    "queue.delete",
    "queue.delete-ok",
    "queue.purge",
    "queue.purge-ok",
    "queue.query",
    "queue.unbind",
    "queue.unbind-ok",
    "session.attach",
    "session.attached",
    "session.command-point",
    "session.completed",
    "session.confirmed",
    "session.detach",
    "session.detached",
    "session.expected",
    "session.flush",
    "session.gap",
    "session.known-completed",
    "session.request-timeout",
    "session.timeout",
    "stream.cancel",
    "stream.cancel-ok",
    "stream.consume",
    "stream.consume-ok",
    "stream.deliver",
    "stream.publish",
    "stream.qos",
    "stream.qos-ok",
    "stream.return",
    "tunnel.request",
    "tx.commit",
    "tx.commit-ok",
    "tx.rollback",
    "tx.rollback-ok",
    "tx.select",
    "tx.select-ok",
]
"""A method, a pattern of methods, or "confirm"."""


class Conditions(TypedDict, total=False):
    """What a rule of `Faults.on` compares: a value, a pattern, or a function of the value."""

    accept_mode: Any
    acquire_mode: Any
    active: Any
    alternate_exchange: Any
    app_id: Any
    application_headers: Any
    arguments: Any
    auto_delete: Any
    binding_key: Any
    body: Any
    broadcast: Any
    capabilities: Any
    challenge: Any
    channel: Any
    channel_id: Any
    channel_max: Any
    class_code: Any
    class_id: Any
    client_properties: Any
    cluster_id: Any
    code: Any
    command_code: Any
    command_id: Any
    command_offset: Any
    commands: Any
    completed: Any
    confirmed: Any
    consume_rate: Any
    consumer_count: Any
    consumer_tag: Any
    content_encoding: Any
    content_length: Any
    content_size: Any
    content_type: Any
    correlation_id: Any
    data_name: Any
    delivery_mode: Any
    delivery_tag: Any
    description: Any
    destination: Any
    discard_unroutable: Any
    dtx_identifier: Any
    durable: Any
    error_code: Any
    error_info: Any
    exchange: Any
    exchange_type: Any
    exclusive: Any
    expected: Any
    expiration: Any
    fail: Any
    field_index: Any
    filename: Any
    filter: Any
    flow_mode: Any
    force: Any
    fragments: Any
    frame_max: Any
    headers: Any
    heartbeat: Any
    heartbeat_max: Any
    heartbeat_min: Any
    host: Any
    identifier: Any
    if_empty: Any
    if_unused: Any
    immediate: Any
    insist: Any
    internal: Any
    join: Any
    known_hosts: Any
    locale: Any
    locales: Any
    mandatory: Any
    max_frame_size: Any
    mechanism: Any
    mechanisms: Any
    message_count: Any
    message_id: Any
    meta_data: Any
    method_id: Any
    multiple: Any
    name: Any
    new_secret: Any
    no_ack: Any
    no_local: Any
    no_wait: Any
    nowait: Any
    octets: Any
    one_phase: Any
    out_of_band: Any
    passive: Any
    prefetch_count: Any
    prefetch_size: Any
    priority: Any
    proxy_name: Any
    queue: Any
    read: Any
    realm: Any
    reason: Any
    redelivered: Any
    reference: Any
    reply_code: Any
    reply_text: Any
    reply_to: Any
    requeue: Any
    response: Any
    resume: Any
    resume_id: Any
    resume_ttl: Any
    routing_key: Any
    security_token: Any
    server_properties: Any
    session: Any
    set_redelivered: Any
    source: Any
    staged_size: Any
    suspend: Any
    text: Any
    ticket: Any
    timely_reply: Any
    timeout: Any
    timestamp: Any
    transaction_id: Any
    transfers: Any
    ttl: Any
    type: Any
    unit: Any
    user_id: Any
    value: Any
    version_major: Any
    version_minor: Any
    virtual_host: Any
    write: Any
    xid: Any
