"""Whose behaviour the broker shows where the documents and the brokers in the field differ.

A personality is data: a frozen record of named choices that the model and the dialects ask. Code
never compares versions. Each choice names the rules it decides.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from fakeamqp.errors import FakeAMQPError

__all__ = ["PERSONALITIES", "RABBITMQ_4_2", "SPEC", "Personality", "UnknownPersonality", "personality"]

_MIB = 1024 * 1024


class UnknownPersonality(FakeAMQPError):
    """No personality has this name."""


@dataclass(frozen=True)
class Personality:
    """Named choices. Sizes are octets, times seconds, limits counts; 0 or None means no limit."""

    name: str
    product: str
    version: str

    # --- wire ------------------------------------------------------------------------------------
    closes_silently_on_bad_frames: bool
    """frame/unknown-type, frame/bad-frame-end: end the socket without connection.close."""
    speaks_of_errors_when: Literal["tuned", "open"]
    """errors/pre-open-error: until then the socket is ended without connection.close."""
    frame_size_tolerance: int
    """frame/oversized-receive: octets a frame may exceed frame-max by."""
    smallest_frame_max: int
    """connection.tune-ok/frame-max-minimum."""
    published_field_grammar: bool
    """types/*: tags as the published grammar has them, instead of those in use; names are validated."""
    heartbeat_off_channel_zero: str
    """heartbeat/channel-zero: condition raised."""
    content_on_channel_zero: str
    """content/channel-zero: condition raised."""
    content_on_closed_channel: str
    """channel/not-open: condition raised for a content header or body; methods always get channel-error."""
    content_class_mismatch: str
    """content/class-id-matches: condition raised."""
    body_overrun: str
    """content/body-overrun: condition raised."""
    refuses_open_before_close_ok: bool
    """channel.close/stability: a channel.open before the awaited close-ok is an error, not discarded."""
    channel_above_maximum: str
    """channel.open/above-channel-max: condition raised."""
    channel_max_limits: Literal["count", "number"]
    """connection.tune/channel-max-meaning: how many channels are open at once, or their highest number."""
    client_ends_closed_transport: bool
    """connection.close-ok/socket-closed-after: a client that asked for the close is waited for."""
    connection_method_out_of_order: str
    """reply-code/command-invalid, channels/no-vhost-switch: condition raised on an open connection."""
    unknown_virtual_host: str
    """connection.open/unknown-vhost: condition raised."""

    # --- names and declarations --------------------------------------------------------------------
    longest_name: int
    """domain.*/length: octets in the name of a queue, exchange or virtual host."""
    restricts_names: bool
    """domain.*/pattern: letters, digits, hyphen, underscore, period and colon only."""
    reserved_queue_redeclarable: bool
    """queue.declare/queue-reserved: an amq. queue that exists may be declared again, not just passively."""
    passive_declare_needs_permission: bool
    """A passive declare needs some permission on the name (RabbitMQ: since 4.2.7)."""
    has_trace_exchange: bool
    """Every virtual host has the internal exchange amq.rabbitmq.trace (RabbitMQ: measured)."""
    default_exchange_bindable: bool
    """queue.bind/exchange-default-exchange."""
    type_mismatch_ends_connection: bool
    """exchange.declare/type-typed: 530 for the connection instead of 406 for the channel."""
    unknown_exchange_type: str
    """exchange.declare/type-support: condition raised."""
    passive_no_wait_is_silent: bool
    """*.declare/passive-no-wait: no error for what is missing."""
    exchange_flags_reserved: bool
    """exchange.declare/reserved-flags: auto-delete and internal are ignored."""
    deleting_missing_is_an_error: bool
    """exchange.delete/exchange-exists, queue.delete/queue-must-exist."""
    unbinding_missing_is_an_error: bool
    """queue.unbind/01 and its must-exist rules."""
    compares_auto_delete: bool
    """queue.declare/auto-delete-pre-existence."""
    equivalence_ignores_unknown_arguments: bool
    """*.declare/passive-equivalent: only arguments the broker knows are compared."""

    # --- queues ------------------------------------------------------------------------------------
    queue_arguments: Mapping[str, tuple[str, ...]]
    """queue.declare/arguments-implementation: by queue type, the arguments that mean something there."""
    consumer_arguments: Mapping[str, tuple[str, ...]]
    """By queue type, the arguments of basic.consume that mean something there."""

    # --- messages --------------------------------------------------------------------------------
    prefetch_is_per_consumer: bool
    """basic.qos/global-connection: global clear = each new consumer, set = the channel together."""
    honours_prefetch_size: bool
    """basic.qos/prefetch-size-*."""
    honours_client_flow: bool
    """channel.flow/*."""
    throttles_with_flow: bool
    """channel.flow/throttling: publishers are held back with channel.flow as well."""
    honours_no_local: bool
    """domain.no-local/*."""
    honours_immediate: bool
    """basic.publish/immediate-*."""
    exclusive_consumer_blocks_get: bool
    """basic.get/exclusive-consumer."""
    recovers_to_original_consumer: bool
    """basic.recover/requeue-false."""
    rejected_avoids_same_channel: bool
    """basic.reject/requeue-01."""
    most_deliveries: int
    """basic.deliver/01: a message that comes back unsettled this often is dead-lettered; 0 = no limit."""
    queues_have_priorities: bool
    """basic/06: every queue orders by priority, not just those declared with x-max-priority."""
    discards_low_priority_first: bool
    """server-model/discard-low-priority-first: a full queue drops its least urgent message, not its head."""
    dead_letters_deleted: bool
    """queue.delete/01: what a deleted queue holds goes to its dead-letter exchange."""
    expiration_is_ttl: bool
    """basic/property-expiration."""
    checks_user_id: bool
    """basic/property-user-id."""
    routes_by_cc_headers: bool
    """Sender-selected distribution: headers CC and BCC (RabbitMQ: documented extension)."""
    direct_reply_to: bool
    """The pseudo-queue amq.rabbitmq.reply-to (RabbitMQ: documented extension)."""
    paused_consumers_count: bool
    """queue.declare-ok/consumer-count: consumers paused by channel.flow are counted."""
    consumer_timeout: float
    """How long a client may hold a delivery where the queue does not say; 0 means for ever."""
    channels_time_out: bool
    """A delivery that was held too long closes the channel (RabbitMQ: documented, up to 4.2)."""
    largest_content: int
    """types/max-content-size: octets of body a content header may announce; 0 = no limit."""
    largest_message: int
    """reply-code/content-too-large: octets of body; 0 = no limit."""
    largest_message_condition: str
    """reply-code/content-too-large: condition raised beyond it."""

    # --- identity and extensions -----------------------------------------------------------------
    announces_host: bool
    """connection.start/server-properties-required-fields."""
    capabilities: tuple[str, ...]
    """Keys announced as true in server-properties' capabilities table."""
    mechanisms: tuple[str, ...] = ("PLAIN", "AMQPLAIN", "ANONYMOUS")
    channel_max: int = 2047
    frame_max: int = 131072
    heartbeat: int = 60
    exchange_types: tuple[str, ...] = field(default=("direct", "fanout", "topic", "headers"))


_EXTENSIONS = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
)

_LIMITS = ("x-max-length", "x-max-length-bytes", "x-overflow")
_DEAD_LETTERS = ("x-dead-letter-exchange", "x-dead-letter-routing-key")
_LIFETIMES = ("x-expires", "x-message-ttl")
_QUEUE_ARGUMENTS = {
    "classic": (
        "x-queue-type",
        *_LIFETIMES,
        *_DEAD_LETTERS,
        *_LIMITS,
        "x-max-priority",
        "x-queue-leader-locator",
        "x-queue-master-locator",
        "x-queue-mode",
        "x-queue-version",
        "x-single-active-consumer",
        "x-consumer-timeout",
    ),
    "quorum": (
        "x-queue-type",
        *_LIFETIMES,
        *_DEAD_LETTERS,
        "x-dead-letter-strategy",
        *_LIMITS,
        "x-delivery-limit",
        "x-max-in-memory-bytes",
        "x-max-in-memory-length",
        "x-queue-leader-locator",
        "x-quorum-initial-group-size",
        "x-single-active-consumer",
        "x-consumer-timeout",
    ),
    "stream": (
        "x-queue-type",
        "x-initial-cluster-size",
        "x-max-age",
        "x-max-length-bytes",
        "x-queue-leader-locator",
        "x-stream-filter-size-bytes",
        "x-stream-max-segment-size-bytes",
        "x-consumer-timeout",
    ),
}
_CONSUMER_ARGUMENTS = {
    "classic": ("x-priority",),
    "quorum": ("x-priority",),
    "stream": ("x-stream-offset", "x-stream-filter", "x-stream-match-unfiltered"),
}

RABBITMQ_4_2 = Personality(
    name="rabbitmq-4.2",
    product="RabbitMQ",
    version="4.2.9",
    closes_silently_on_bad_frames=False,
    speaks_of_errors_when="tuned",
    frame_size_tolerance=8,
    smallest_frame_max=8192,
    published_field_grammar=False,
    heartbeat_off_channel_zero="unexpected-frame",
    content_on_channel_zero="unexpected-frame",
    content_on_closed_channel="unexpected-frame",
    content_class_mismatch="unexpected-frame",
    body_overrun="frame-error",
    refuses_open_before_close_ok=True,
    channel_above_maximum="not-allowed",
    channel_max_limits="count",
    client_ends_closed_transport=True,
    connection_method_out_of_order="channel-error",
    unknown_virtual_host="not-allowed",
    longest_name=255,
    restricts_names=False,
    reserved_queue_redeclarable=False,
    passive_declare_needs_permission=True,
    has_trace_exchange=True,
    default_exchange_bindable=False,
    type_mismatch_ends_connection=False,
    unknown_exchange_type="precondition-failed",
    passive_no_wait_is_silent=False,
    exchange_flags_reserved=False,
    deleting_missing_is_an_error=False,
    unbinding_missing_is_an_error=False,
    compares_auto_delete=True,
    equivalence_ignores_unknown_arguments=True,
    queue_arguments=_QUEUE_ARGUMENTS,
    consumer_arguments=_CONSUMER_ARGUMENTS,
    prefetch_is_per_consumer=True,
    honours_prefetch_size=False,
    honours_client_flow=False,
    throttles_with_flow=False,
    honours_no_local=False,
    honours_immediate=False,
    exclusive_consumer_blocks_get=False,
    recovers_to_original_consumer=False,
    rejected_avoids_same_channel=False,
    most_deliveries=0,
    queues_have_priorities=False,
    discards_low_priority_first=False,
    dead_letters_deleted=False,
    expiration_is_ttl=True,
    checks_user_id=True,
    routes_by_cc_headers=True,
    direct_reply_to=True,
    paused_consumers_count=True,
    consumer_timeout=1800.0,
    channels_time_out=True,
    largest_content=512 * _MIB,
    largest_message=16 * _MIB,
    largest_message_condition="precondition-failed",
    announces_host=False,
    capabilities=_EXTENSIONS,
)

SPEC = replace(
    RABBITMQ_4_2,
    name="spec",
    product="fakeamqp",
    version="0.1.0",
    closes_silently_on_bad_frames=True,
    speaks_of_errors_when="open",
    frame_size_tolerance=0,
    smallest_frame_max=4096,
    published_field_grammar=True,
    heartbeat_off_channel_zero="frame-error",
    content_on_channel_zero="channel-error",
    content_on_closed_channel="channel-error",
    content_class_mismatch="frame-error",
    body_overrun="unexpected-frame",
    refuses_open_before_close_ok=False,
    channel_above_maximum="channel-error",
    channel_max_limits="number",
    client_ends_closed_transport=False,
    connection_method_out_of_order="command-invalid",
    unknown_virtual_host="invalid-path",
    longest_name=127,
    restricts_names=True,
    reserved_queue_redeclarable=True,
    passive_declare_needs_permission=False,
    has_trace_exchange=False,
    default_exchange_bindable=True,
    type_mismatch_ends_connection=True,
    unknown_exchange_type="command-invalid",
    passive_no_wait_is_silent=True,
    exchange_flags_reserved=True,
    deleting_missing_is_an_error=True,
    unbinding_missing_is_an_error=True,
    compares_auto_delete=False,
    equivalence_ignores_unknown_arguments=False,
    prefetch_is_per_consumer=False,
    honours_prefetch_size=True,
    honours_client_flow=True,
    throttles_with_flow=True,
    honours_no_local=True,
    honours_immediate=True,
    exclusive_consumer_blocks_get=True,
    recovers_to_original_consumer=True,
    rejected_avoids_same_channel=True,
    most_deliveries=5,
    queues_have_priorities=True,
    discards_low_priority_first=True,
    dead_letters_deleted=True,
    expiration_is_ttl=False,
    checks_user_id=False,
    routes_by_cc_headers=False,
    direct_reply_to=False,
    paused_consumers_count=False,
    consumer_timeout=0.0,
    channels_time_out=False,
    largest_content=0,
    largest_message=0,
    largest_message_condition="content-too-large",
    announces_host=True,
    capabilities=(
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities",
    ),
)

PERSONALITIES = {each.name: each for each in (RABBITMQ_4_2, SPEC)}


def personality(name: str | Personality) -> Personality:
    """The personality called `name`; a record passes through.

    Raises:
        UnknownPersonality: nothing is called so; the text names the nearest match.
    """
    if isinstance(name, Personality):
        return name
    found = PERSONALITIES.get(name)
    if found is None:
        near = difflib.get_close_matches(name, PERSONALITIES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownPersonality(f"no personality {name!r}{hint} Known: {', '.join(sorted(PERSONALITIES))}")
    return found
