"""The types of the arguments of `Faults.on`: written by `python -m compat_tests.tools.fault_names`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

__all__ = ["Conditions", "MethodName", "ProtocolName"]

ProtocolName: TypeAlias = Literal["0-9-1", "0-10", "1-0", "0-9", "0-8"]
"""The name of a protocol."""

MethodName: TypeAlias = Literal[
    "heartbeat",
    "connection.heartbeat",
    "confirm",
    "*",
    "*.",
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
    "attach.*",
    "basic.*",
    "begin.*",
    "channel.*",
    "close.*",
    "confirm.*",
    "connection.*",
    "detach.*",
    "disposition.*",
    "dtx.*",
    "end.*",
    "exchange.*",
    "execution.*",
    "file.*",
    "flow.*",
    "message.*",
    "open.*",
    "queue.*",
    "sasl-challenge.*",
    "sasl-init.*",
    "sasl-mechanisms.*",
    "sasl-outcome.*",
    "sasl-response.*",
    "session.*",
    "stream.*",
    "transfer.*",
    "tunnel.*",
    "tx.*",
    "access.request",
    "access.request-ok",
    "attach",
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
    "begin",
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
    "close",
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
    "detach",
    "disposition",
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
    "end",
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
    "flow",
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
    "open",
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
    "sasl-challenge",
    "sasl-init",
    "sasl-mechanisms",
    "sasl-outcome",
    "sasl-response",
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
    "transfer",
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

    aborted: Any
    accept_mode: Any
    acquire_mode: Any
    active: Any
    additional_data: Any
    alternate_exchange: Any
    app_id: Any
    application_headers: Any
    arguments: Any
    auto_delete: Any
    available: Any
    batchable: Any
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
    closed: Any
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
    container_id: Any
    content_encoding: Any
    content_length: Any
    content_size: Any
    content_type: Any
    correlation_id: Any
    data_name: Any
    delivery_count: Any
    delivery_id: Any
    delivery_mode: Any
    delivery_tag: Any
    description: Any
    desired_capabilities: Any
    destination: Any
    discard_unroutable: Any
    drain: Any
    dtx_identifier: Any
    durable: Any
    echo: Any
    error: Any
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
    first: Any
    flow_mode: Any
    force: Any
    fragments: Any
    frame_max: Any
    handle: Any
    handle_max: Any
    headers: Any
    heartbeat: Any
    heartbeat_max: Any
    heartbeat_min: Any
    host: Any
    hostname: Any
    identifier: Any
    idle_time_out: Any
    if_empty: Any
    if_unused: Any
    immediate: Any
    incoming_locales: Any
    incoming_window: Any
    incomplete_unsettled: Any
    initial_delivery_count: Any
    initial_response: Any
    insist: Any
    internal: Any
    join: Any
    known_hosts: Any
    last: Any
    link_credit: Any
    locale: Any
    locales: Any
    mandatory: Any
    max_frame_size: Any
    max_message_size: Any
    mechanism: Any
    mechanisms: Any
    message_count: Any
    message_format: Any
    message_id: Any
    meta_data: Any
    method_id: Any
    more: Any
    multiple: Any
    name: Any
    new_secret: Any
    next_incoming_id: Any
    next_outgoing_id: Any
    no_ack: Any
    no_local: Any
    no_wait: Any
    nowait: Any
    octets: Any
    offered_capabilities: Any
    one_phase: Any
    out_of_band: Any
    outgoing_locales: Any
    outgoing_window: Any
    passive: Any
    prefetch_count: Any
    prefetch_size: Any
    priority: Any
    properties: Any
    proxy_name: Any
    queue: Any
    rcv_settle_mode: Any
    read: Any
    realm: Any
    reason: Any
    redelivered: Any
    reference: Any
    remote_channel: Any
    reply_code: Any
    reply_text: Any
    reply_to: Any
    requeue: Any
    response: Any
    resume: Any
    resume_id: Any
    resume_ttl: Any
    role: Any
    routing_key: Any
    sasl_server_mechanisms: Any
    security_token: Any
    server_properties: Any
    session: Any
    set_redelivered: Any
    settled: Any
    snd_settle_mode: Any
    source: Any
    staged_size: Any
    state: Any
    suspend: Any
    target: Any
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
    unsettled: Any
    user_id: Any
    value: Any
    version_major: Any
    version_minor: Any
    virtual_host: Any
    write: Any
    xid: Any
