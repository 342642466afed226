"""What RabbitMQ's versions do otherwise from one another in AMQP 1.0: that part of a personality.

The personalities before 4.0 and `spec` do not speak 1.0; their values mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from fakeamqp.model.versions import ONLY_4_0, ONLY_4_1, SINCE_4_3, Choices, choice

_UNTIL_4_1 = ONLY_4_0 | ONLY_4_1


@dataclass(frozen=True, init=False)
class Amqp10Choices(Choices):
    """Named choices; the defaults are those of RabbitMQ 4.2. Times are seconds, sizes bytes."""

    # --- connection ----------------------------------------------------------------------------------
    mechanisms_order: tuple[str, ...] = choice(("PLAIN", "AMQPLAIN", "ANONYMOUS"))
    """1-0/sasl/mechanisms: the order in which they are offered (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
    channel_max: int = choice(63)
    """1-0/open/channel-max."""
    handle_max: int = choice(255)
    """1-0/begin/handle-max."""
    largest_message: int = choice(16_777_216)
    """1-0/attach/max-message-size."""

    tells_malformed_frames: bool = choice(False, {SINCE_4_3: True})
    """1-0/errors/connection-scope: close names what is wrong with a frame's header; otherwise the transport
    ends at once (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
    renews_credentials: bool = choice(True, {ONLY_4_0: False})
    """1-0/management/tokens: the management node takes new credentials (RabbitMQ: documented)."""

    # --- sessions ------------------------------------------------------------------------------------
    incoming_window: int = choice(400)
    """1-0/begin/incoming-window: so many transfers, granted again when half of them are left."""
    first_transfer_id: int = choice(0, {_UNTIL_4_1: 4_294_967_292})
    """1-0/begin/next-outgoing-id (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
    first_delivery_count: int = choice(0, {_UNTIL_4_1: 4_294_967_291})
    """1-0/attach/initial-delivery-count (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
    handle_in_use_ends_session: bool = choice(False, {SINCE_4_3: True})
    """1-0/attach/handle-in-use: otherwise the new link takes the place of the old one."""

    # --- links ---------------------------------------------------------------------------------------
    link_errors_end_sessions: bool = choice(False, {_UNTIL_4_1: True})
    """1-0/errors/link-scope: an error of a link ends its session (RabbitMQ: documented)."""
    attach_refusal: str = choice("Attach refused: {}", {_UNTIL_4_1: "Attach rejected: {}"}, any_text=True)
    """The text for an attach with an illegal field."""
    needs_source: bool = choice(True, {_UNTIL_4_1: False})
    """1-0/attach/source: the attach of a receiver without source is refused; otherwise RabbitMQ crashes."""
    link_credit: int = choice(170)
    """1-0/flow/link-credit: what publishers get; granted again when half of it is left."""
    makes_dynamic_nodes: bool = choice(True, {ONLY_4_0: False})
    """1-0/attach/dynamic: a dynamic source or target gets a queue (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
    replies_directly: bool = choice(True, {_UNTIL_4_1: False})
    """1-0/attach/volatile: direct reply-to, also with clients of 0-9-1 (RabbitMQ: measured on 4.0.5 and
    4.3.6). A dynamic source then keeps no field of the attach."""
    echoes_source_capabilities: bool = choice(True, {SINCE_4_3: False})
    """The answer to an attach has the capabilities of the source (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
    names_distribution_mode: bool = choice(False, {SINCE_4_3: True})
    """The answer to an attach says whether messages are moved or copied."""
    tells_activity: bool = choice(False, {SINCE_4_3: True})
    """1-0/flow/active: consumers of quorum queues are told whether they are active, with first credit."""
    echoes_filters: bool = choice(True, {ONLY_4_0: False})
    """The answer to an attach has the filters that are in force."""
    filters_need_descriptors: bool = choice(False, {SINCE_4_3: True})
    """A filter that is not described has no effect, unless `amqp_filter_set_bug` is permitted."""
    property_filters: bool = choice(True, {ONLY_4_0: False})
    """1-0/filter/properties: streams filter by properties, and the descriptor of a filter says what it is; in
    4.0 its name must be the same (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
    sql_filters: bool = choice(True, {_UNTIL_4_1: False})
    """1-0/filter/sql: streams filter by SQL expressions (RabbitMQ: documented)."""
    offsets_may_be_symbols: bool = choice(True, {_UNTIL_4_1: False})
    """1-0/attach/filter: a symbol may say where a stream's reader begins (RabbitMQ: tagged sources)."""
    targets_offer_filters: bool = choice(False, {SINCE_4_3: True})
    """Links to streams offer filters, too, not only links from them (RabbitMQ: measured on 4.3.6)."""
    shows_consumer_timeout: bool = choice(False, {SINCE_4_3: True})
    """The HTTP API shows a consumer timeout for links to clients (RabbitMQ: measured on 4.3.6)."""

    # --- messages ------------------------------------------------------------------------------------
    durable_by_default: bool = choice(False, {_UNTIL_4_1: True})
    """1-0/header/durable: what a message is whose header does not say it (RabbitMQ: documented)."""
    copies_by_annotation: bool = choice(True, {ONLY_4_0: False})
    """1-0/annotations/x-cc: the annotation x-cc has further routing keys."""
    rejections_name_queues: bool = choice(False, {SINCE_4_3: True})
    """1-0/rejected/error: a rejected outcome has an error that names the queue and its reason."""
    unreadable_messages_end_sessions: bool = choice(False, {_UNTIL_4_1: True})
    """1-0/transfer/decode-error: with internal-error, as after a crash; otherwise the link is detached."""
    checks_sections: bool = choice(False, {SINCE_4_3: True})
    """Sections in a wrong order, or with a value of another type, are refused (RabbitMQ: measured)."""
    drops_decimals: bool = choice(True, {ONLY_4_0: False})
    """Decimals are left out of the headers of 0-9-1; otherwise RabbitMQ crashes (its sources)."""
    writes_trailing_nulls: bool = choice(False, {_UNTIL_4_1: True})
    """Transfers and properties have all fields, also those at the end that are null (RabbitMQ: measured on
    4.0.5 and 4.3.6)."""
    broker_annotations_first: bool = choice(False, {SINCE_4_3: True})
    """The broker's annotations come before the publisher's (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
    replies_name_queues: bool = choice(True, {_UNTIL_4_1: False})
    """The reply-to of 0-9-1 is the name of a queue, that of 1.0 its address (RabbitMQ: measured)."""
    writes_more: bool = choice(True, {_UNTIL_4_1: False})
    """Transfers say that no more follow, and flows what they do not ask for (RabbitMQ: measured on 4.0.5 and
    4.3.6)."""
    checks_further_rights: bool = choice(True, {_UNTIL_4_1: False})
    """The management node checks queries for bindings as bindings, and the rights for an alternate exchange
    (RabbitMQ: measured on 4.0.5 and 4.3.6; since 4.2.9)."""
    purging_missing_queue: str = choice("404", {ONLY_4_0: "400"})
    """The status of a management request that purges a queue which does not exist."""
