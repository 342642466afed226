"""The choices of a personality: every behaviour in which the specifications and released brokers differ.

A personality is data: a frozen record of named choices that the model and the protocols read. Code never
compares versions. A choice is one row: its values, and below them what it decides, the rules that it decides,
and what is known of RabbitMQ's versions. Sources are the documentation, release notes and behaviour of the
released versions. Protocols and the management API have tables of their own: see `Personality.extension`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from fakeamqp.errors import FakeAMQPError, nearest
from fakeamqp.model.arguments.policy_keys import foreign_policy_keys, policy_keys
from fakeamqp.model.arguments.queue_arguments import CONSUMER_ARGUMENTS, QUEUE_ARGUMENTS, legal_values, taken
from fakeamqp.model.personality.features import Phase, deprecated_features
from fakeamqp.model.versions import (
    NAMES,
    ONLY_3_10,
    ONLY_3_13,
    ONLY_4_0,
    ONLY_4_1,
    SINCE_4_3,
    SPEC,
    UNTIL_3_13,
    UNTIL_4_0,
    UNTIL_4_1,
    Choices,
    choice,
    derived,
    made,
    part,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fakeamqp.model.personality.keywords import PersonalityChoices
    from fakeamqp.model.personality.variants import ChoiceDifference
    from fakeamqp.model.versions import PersonalityName

R = TypeVar("R", bound=Choices)

_MIB = 1024 * 1024

_HEADER_0_9_1 = b"AMQP\x00\x00\x09\x01"
_HEADER_1_0 = b"AMQP\x03\x01\x00\x00"
"""With SASL. RabbitMQ answers with it since 4.0 (measured)."""

_TOO_MANY_CHANNELS = (
    "number of channels opened for user '{}' has reached the maximum allowed user limit of {}"
)

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

_CHECKS_3_10 = ("topic-permission", "reply-to", "user-id", "expiration", "copies")
_STANDARD_EXCHANGES = ("direct", "fanout", "topic", "headers")
# The types of plugins are available as if the plugins were enabled.
_EXCHANGES = (
    *_STANDARD_EXCHANGES,
    "x-consistent-hash",
    "x-delayed-message",
    "x-local-random",
    "x-modulus-hash",
    "x-random",
)
# Atoms of Erlang that a test is likely to use as a type.
_ERLANG_WORDS = (
    "",
    "bar",
    "broadcast",
    "default",
    "dummy",
    "exchange",
    "foo",
    "hash",
    "header",
    "invalid",
    "local",
    "match",
    "missing",
    "nil",
    "none",
    "null",
    "ok",
    "other",
    "queue",
    "random",
    "stream",
    "system",
    "test",
    "type",
    "undefined",
    "unknown",
)


@dataclass(frozen=True, init=False)
class QuorumChoices(Choices):
    """Named choices; the defaults are those of RabbitMQ 4.2. The outcomes of deliveries are in `delivery`."""

    delivery_limit: int | None = choice(20, {UNTIL_3_13: None})
    """The default delivery limit: how often a message may be returned; None means no limit (RabbitMQ: 20
    since 4.0, pull request 11937)."""
    limit_counts: Literal["returns", "failures"] = choice("returns", {SINCE_4_3: "failures"})
    """What the delivery limit counts: the returns of a message, or its failed deliveries."""
    failures: tuple[str, ...] = choice(
        ("lost", "rejected", "refused", "failed"), {SINCE_4_3: ("lost", "rejected", "failed")}
    )
    """The outcomes of deliveries that count as failures."""
    back_without_limit: tuple[str, ...] = choice(("released", "failed"), {SINCE_4_3: ()})
    """The outcomes of deliveries that move a message to the end of a queue without a delivery limit (RabbitMQ
    4.3.6: none)."""
    negative_limit_is_none: bool = choice(True, {UNTIL_3_13: False})
    """A negative delivery limit means no limit; otherwise no message may be returned at all."""
    invalid_limit_is_none: bool = choice(True, {UNTIL_4_1: False})
    """A delivery limit that is not a number is ignored; otherwise it is a limit that is never reached."""
    shows_acquisitions: bool = choice(False, {SINCE_4_3: True})
    """Returned messages have the header x-acquired-count, and their x-delivery-count counts failures only."""
    carries_failures: bool = choice(True, {UNTIL_3_13: False})
    """A dead letter keeps its count of failures in the quorum queue that it is routed to."""
    priorities: Literal["none", "bands", "levels"] = choice(
        "bands", {UNTIL_3_13: "none", SINCE_4_3 | SPEC: "levels"}
    )
    """Messages have no priority; or two, of which the higher does not starve the lower; or 32 strict ones."""
    single_active_by_priority: bool = choice(True, {UNTIL_3_13: False})
    """The single active consumer is one of the highest priority; otherwise the oldest one."""
    returns_activate: bool = choice(True, {ONLY_4_0: False})
    """A returned message may make another consumer the active one; otherwise only a settled one may."""
    losses_by_age: bool = choice(True, {UNTIL_3_13: False})
    """Deliveries of a closed channel return in the order of its consumers' ages; otherwise of their tags."""
    counts_properties: bool = choice(False, {SINCE_4_3: True})
    """Limits in bytes count a message's properties and its body; otherwise its body only."""
    purges_all: bool = choice(False, {SINCE_4_3: True})
    """A purge also removes messages that wait for a retry, and held dead letters."""
    consumers_time_out: bool = choice(False, {SINCE_4_3: True})
    """The acknowledgement timeout returns the message to the queue; otherwise it closes the channel."""
    counts_on_get: bool = choice(False, {ONLY_3_10: True})
    """basic.get shows x-delivery-count even if it is 0 (RabbitMQ: measured on 3.10.8)."""
    refuses_shared_windows: bool = choice(True, {SPEC: False})
    """No consumer may share its prefetch limit with others (basic.qos with global set)."""
    tick: float = choice(5.0)
    """Seconds between two checks of an expired queue that still has unsettled deliveries."""


@dataclass(frozen=True, init=False)
class BranchChoices(Choices):
    """Named choices; the defaults are qpidd's. Times are seconds."""

    contradictory_flags: Literal["command-invalid", "not-allowed"] = choice(
        "command-invalid", {SPEC: "not-allowed"}
    )
    """dtx.start/join-and-resume, dtx.end/suspend-and-fail: condition raised."""
    default_timeout: int = choice(60)
    """dtx.get-timeout/value, dtx.set-timeout/reset."""
    longest_timeout: int | None = choice(3600, {SPEC: None})
    """dtx.set-timeout/effective: invalid-argument is raised for more; None = any."""
    joins: bool = choice(True)
    """dtx.start/join-unsupported: a session can join a branch that another one has started; otherwise
    not-implemented is raised."""


@dataclass(frozen=True, init=False)
class Personality(Choices):
    """The behaviour of a version of RabbitMQ, or of the specifications, as named choices.

    `Personality("rabbitmq-4.3")` is one of the personalities; `with_` makes another one with some choices
    made otherwise. Sizes are bytes, times seconds, limits counts; 0 or None means no limit.

    Args:
        name: "rabbitmq-3.10", "rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2" or
            "rabbitmq-4.3", or "spec" for the published specifications to the letter.

    Raises:
        UnknownPersonality: no personality has this name; the text names the nearest match.
    """

    if TYPE_CHECKING:

        def __init__(self, name: PersonalityName, /) -> None: ...

    else:

        def __new__(cls, name=None, /, **choices):
            return object.__new__(cls) if name is None else personality(name)

        def __init__(self, name: PersonalityName = None, /, **choices):
            if name is None:
                super().__init__(**choices)
            elif choices:
                raise TypeError(f"Personality({name!r}).with_(...) takes choices, not Personality(...)")

    name: str = derived(str, any_text=True)
    product: str = choice("RabbitMQ", {SPEC: "fakeamqp"}, any_text=True)
    version: str = choice(
        "4.2.9",
        {
            ONLY_3_10: "3.10.8",
            ONLY_3_13: "3.13.7",
            ONLY_4_0: "4.0.5",
            ONLY_4_1: "4.1.8",
            SINCE_4_3: "4.3.6",
            SPEC: "0.1.0",
        },
        any_text=True,
    )

    # --- wire ------------------------------------------------------------------------------------
    header_for_others: bytes = choice(_HEADER_1_0, {UNTIL_3_13 | SPEC: _HEADER_0_9_1})
    """protocol-header/version-mismatch: the protocol header that answers one of no known protocol."""
    unspoken_protocols: tuple[str, ...] = choice((), {UNTIL_3_13 | SPEC: ("1-0",)}, any_text=True)
    """Protocols that the broker does not speak: their headers are answered as those of no known one."""
    awaits_whole_header: bool = choice(True, {SPEC: False})
    """protocol-header/not-amqp: bytes that cannot become a protocol header wait for the eighth."""
    explains_malformed_input: bool = choice(False, {SPEC: True})
    """errors/*: malformed input is refused with a text that explains it; otherwise with its bytes as an
    Erlang term, with 541, or by closing the socket (RabbitMQ: measured)."""
    closes_silently_on_bad_frames: bool = choice(False, {SPEC: True})
    """frame/unknown-type, frame/bad-frame-end: close the socket without connection.close."""
    reports_errors_from: Literal["tuned", "open"] = choice("tuned", {SPEC: "open"})
    """errors/pre-open-error: before this state the socket is closed without connection.close."""
    frame_size_tolerance: int = choice(8, {SPEC: 0})
    """frame/oversized-receive: bytes by which a frame may exceed frame-max."""
    sends_oversized_headers: bool = choice(True, {SPEC: False})
    """frame/oversized-send: a content header that exceeds the client's frame-max is sent (RabbitMQ: measured
    on 3.10.8 and 4.3.6); otherwise the connection is closed with 501."""
    smallest_frame_max: int = choice(8192, {UNTIL_4_0 | SPEC: 4096})
    """connection.tune-ok/frame-max-minimum."""
    published_field_grammar: bool = choice(False, {SPEC: True})
    """types/*: tags of the published grammar instead of those in common use; names are validated."""
    heartbeat_off_channel_zero: str = choice("unexpected-frame", {SPEC: "frame-error"})
    """heartbeat/channel-zero: condition raised."""
    heartbeat_ticks: bool = choice(True, {SPEC: False})
    """heartbeat/interval, heartbeat/missed-two: the broker looks at what was sent every half interval, and
    sends a heartbeat after every idle half and after the first one; it looks at what was received every
    interval, and ends the connection after two looks in a row without new bytes, 2 to 3 intervals after the
    last one. Otherwise it sends one per idle interval, and ends the connection after two (RabbitMQ: measured
    on 4.0.5 and 4.3.6)."""
    send_timeout: float = choice(30.0, {SPEC: 0.0})
    """How many seconds a client may take none of the output that waits for it; then its connection is reset.
    0 means no limit (RabbitMQ: measured on 3.10.8, 4.0.5 and 4.3.6, with and without heartbeats)."""
    content_on_channel_zero: str = choice("unexpected-frame", {SPEC: "channel-error"})
    """content/channel-zero: condition raised."""
    content_on_closed_channel: str = choice("unexpected-frame", {SPEC: "channel-error"})
    """channel/not-open: condition raised for a content header or body; methods always get channel-error."""
    content_class_mismatch: str = choice("unexpected-frame", {SPEC: "frame-error"})
    """content/class-id-matches: condition raised."""
    body_overrun: str = choice("frame-error", {UNTIL_4_1: "", SPEC: "unexpected-frame"})
    """content/body-overrun: condition raised; empty if excess bytes are accepted, and never complete."""
    refuses_open_before_close_ok: bool = choice(True, {SPEC: False})
    """channel.close/stability: a channel.open before the awaited close-ok is an error, not discarded."""
    channel_above_maximum: str = choice("not-allowed", {SPEC: "channel-error"})
    """channel.open/above-channel-max: condition raised."""
    channel_max_limits: Literal["count", "number"] = choice("count", {SPEC: "number"})
    """connection.tune/channel-max-meaning: the number of open channels, or the highest channel number."""
    client_ends_closed_transport: bool = choice(True, {SPEC: False})
    """connection.close-ok/socket-closed-after: wait for a client that requested the close to do so."""
    connection_method_out_of_order: str = choice("channel-error", {SPEC: "command-invalid"})
    """reply-code/command-invalid, channels/no-vhost-switch: condition raised on an open connection."""
    unknown_virtual_host: str = choice("not-allowed", {SPEC: "invalid-path"})
    """connection.open/unknown-vhost: condition raised."""
    takes_cancel_ok: bool = choice(False, {SINCE_4_3: True})
    """basic.cancel-ok from a client cancels the consumer as basic.cancel does, without an answer, and an
    unknown tag ends the connection with 541 (RabbitMQ: measured on 4.3.6)."""

    prints_utf8: bool = choice(True, {ONLY_3_10: False})
    """errors/*: the bytes of malformed input, as an Erlang term, are text if they are UTF-8; otherwise only
    what Latin-1 can print is text, and sent byte by byte (RabbitMQ: the latter measured on 3.10.8)."""
    rewrites_headers: bool = choice(True, {ONLY_3_10 | SPEC: False})
    """Consumers get the headers of a message sorted by name, of several with one name the first, and int64
    with the tag l (RabbitMQ: measured on 4.0.5 and 4.3.6, and that 3.10.8 does not; since 3.13)."""
    sorts_headers: bool = choice(True, {SPEC: False})
    """Where the broker adds a header, such as `x-death`, it sorts all of them by name (RabbitMQ: measured on
    3.10.8, 4.0.5 and 4.3.6)."""
    refusals_name_permission: bool = choice(True, {ONLY_3_10: False})
    """The text of a refused permission names the one that is missing: configure, write or read (RabbitMQ:
    measured on 4.0.5 and 4.3.6, and that 3.10.8 does not)."""

    # --- names and declarations --------------------------------------------------------------------
    longest_name: int = choice(255, {SPEC: 127})
    """domain.*/length: bytes in the name of a queue, exchange or virtual host."""
    restricts_names: bool = choice(False, {SPEC: True})
    """domain.*/pattern: letters, digits, hyphen, underscore, period and colon only."""
    reserved_queue_redeclarable: bool = choice(False, {SPEC: True})
    """queue.declare/queue-reserved: an existing amq. queue may be declared again, not just passively."""
    passive_declare_needs_permission: bool = choice(True, {UNTIL_4_1 | SPEC: False})
    """A passive declare needs some permission on the name (RabbitMQ: since 4.2.7)."""
    has_trace_exchange: bool = choice(True, {SPEC: False})
    """Every virtual host has the internal exchange amq.rabbitmq.trace (RabbitMQ: measured)."""
    has_log_exchange: bool = choice(False, {SINCE_4_3: True})
    """The virtual host / has the internal exchange amq.rabbitmq.log (RabbitMQ: measured on 4.3.6)."""
    transient_exchanges_survive: bool = choice(True, {UNTIL_4_1 | SPEC: False})
    """exchange.declare/durable-survives: a restart keeps exchanges that are not durable (RabbitMQ: measured
    on 4.3.6, and on 4.0.5 with Khepri, the usual metadata store since 4.2)."""
    restart_keeps_unbound_exchanges: bool = choice(False, {UNTIL_4_1: True})
    """A durable auto-delete exchange stays when a restart takes its last binding (RabbitMQ: measured on 3.10
    and 4.0.5; not with Khepri, the usual metadata store since 4.2)."""
    default_exchange_bindable: bool = choice(False, {SPEC: True})
    """queue.bind/exchange-default-exchange."""
    type_mismatch_ends_connection: bool = choice(False, {SPEC: True})
    """exchange.declare/type-typed: 530 for the connection instead of 406 for the channel."""
    unknown_exchange_type: str = choice("precondition-failed", {ONLY_3_10 | SPEC: "command-invalid"})
    """exchange.declare/type-support: condition raised."""
    passive_no_wait_is_silent: bool = choice(False, {SPEC: True})
    """*.declare/passive-no-wait: no error for a missing entity."""
    exchange_flags_reserved: bool = choice(False, {SPEC: True})
    """exchange.declare/reserved-flags: auto-delete and internal are ignored."""
    deleting_missing_is_an_error: bool = choice(False, {SPEC: True})
    """exchange.delete/exchange-exists, queue.delete/queue-must-exist."""
    unbinding_missing_is_an_error: bool = choice(False, {SPEC: True})
    """queue.unbind/01 and its must-exist rules."""
    compares_auto_delete: bool = choice(True, {SPEC: False})
    """queue.declare/auto-delete-pre-existence."""
    equivalence_ignores_unknown_arguments: bool = choice(True, {SPEC: False})
    """*.declare/passive-equivalent: only arguments known to the broker are compared."""
    most_topic_wildcards: int = choice(0, {SINCE_4_3: 2})
    """How many words of a topic binding's key may be `#`; 0 = any number (RabbitMQ: 2 since 4.3.5)."""
    timestamps_match_in_milliseconds: bool = choice(True, {ONLY_3_10 | SPEC: False})
    """A headers exchange multiplies a message's timestamps by 1000, but not those of a binding."""
    numbers_match_by_value: bool = choice(False, {ONLY_3_10: True})
    """In a headers exchange 1 matches 1.0 (RabbitMQ: measured on 3.10.8)."""
    duplicates_match_in_turn: bool = choice(False, {ONLY_3_10: True})
    """A headers exchange compares the first field of a name in a binding with the first one in the message,
    the second with the second, and so on (RabbitMQ: measured on 3.10.8); otherwise each with the first."""
    exchange_types: tuple[str, ...] = choice(
        _EXCHANGES,
        {
            UNTIL_3_13: tuple(each for each in _EXCHANGES if each != "x-local-random"),
            SPEC: (*_STANDARD_EXCHANGES, "system"),
        },
    )
    """exchange.declare/type-support, exchange/extensions: the supported types."""
    invalid_exchange_types: tuple[str, ...] = choice(_ERLANG_WORDS, {SPEC: ("",)}, any_text=True)
    """Types reported as invalid instead of unknown: atoms that RabbitMQ's runtime knows (measured)."""
    bindings_sorted_by: Literal["key", "age", "destination"] = choice(
        "age", {UNTIL_4_1: "key", SINCE_4_3: "destination"}
    )
    """The order in which x-modulus-hash counts its bindings. By key, a restart also re-sorts hash rings."""
    largest_hash_weight: int = choice(10_000, {UNTIL_4_1: 0})
    """The largest binding key of x-consistent-hash; 0 = any number (RabbitMQ: 10000 since 4.2)."""
    hashes_empty_headers: bool = choice(False, {SINCE_4_3: True})
    """x-consistent-hash can hash an empty table or array (RabbitMQ: fails before 4.3)."""
    deprecated_features: Mapping[str, Phase] = derived(deprecated_features)
    """The deprecated features known to the broker, and their default states: see `features`."""

    # --- queues ------------------------------------------------------------------------------------
    queue_arguments: Mapping[str, tuple[str, ...]] = derived(lambda name: taken(QUEUE_ARGUMENTS, name))
    """queue.declare/arguments-implementation: by queue type, the arguments that mean something there."""
    consumer_arguments: Mapping[str, tuple[str, ...]] = derived(lambda name: taken(CONSUMER_ARGUMENTS, name))
    """By queue type, the arguments of basic.consume that mean something there."""
    removed_queue_arguments: tuple[str, ...] = choice(())
    """queue.declare/arguments-implementation: arguments that no queue can be declared with any more."""
    argument_values: Mapping[str, tuple[str | int, ...]] = derived(legal_values)
    """The legal values of arguments that take but a few; one not named here takes any."""
    validates_consumer_timeout: bool = choice(False, {SINCE_4_3: True})
    """An invalid x-consumer-timeout is refused; otherwise it is ignored (RabbitMQ: since 4.3)."""
    crashes_on_locators: bool = choice(False, {ONLY_3_10: True})
    """An x-queue-master-locator that names no strategy closes the connection with 541 (RabbitMQ: measured on
    3.10.8)."""
    absent_queue_types: tuple[str, ...] = choice(("undefined", ""), {UNTIL_4_1: ("undefined",), SPEC: ()})
    """Values of x-queue-type that are ignored."""
    crashes_on_ages: bool = choice(False, {UNTIL_4_1: True})
    """An age that does not begin with a digit closes the connection with 541."""
    stream_filter_size_refusal: str = choice(
        "Invalid value for x-stream-filter-size-bytes",
        {UNTIL_4_1: "Invalid value for  x-stream-filter-size-bytes"},
        any_text=True,
    )
    """The text for an x-stream-filter-size-bytes out of range, looked at once the flags are right."""
    streams_rewrite_properties: bool = choice(True, {SPEC: False})
    """Streams deliver messages with the properties that AMQP 1.0 can express (RabbitMQ: documented)."""
    streams_annotate: bool = choice(True, {ONLY_3_10: False})
    """A stream keeps headers with names that begin with x- as annotations, which may be tables and arrays,
    returns bytes in headers as text, and every message with a delivery_mode; otherwise it keeps neither
    tables nor arrays, and changes nothing else (RabbitMQ: the latter measured on 3.10.8)."""
    streams_refuse_rejects: bool = choice(False, {ONLY_3_10: True})
    """basic.reject and basic.nack of a stream's delivery close the connection with 540; otherwise they settle
    it (RabbitMQ: the former measured on 3.10.8)."""
    stream_consumer_terms: tuple[str, str] = choice(
        ("stream {}", "stream {}"), {UNTIL_3_13: ("'{}'", "stream queues {}")}, any_text=True
    )
    """How the errors for a consumer without a prefetch limit, and for one without acknowledgements, name
    streams."""
    single_active_get_refusal: str = choice('<<"quorum">>', {UNTIL_4_1: "quorum"}, any_text=True)
    """How the error for basic.get on a queue with a single active consumer names the queue type."""
    classic_failures: tuple[str, ...] = choice((), {SINCE_4_3: ("lost", "rejected", "failed")})
    """The outcomes of deliveries that classic queues count as failures. A dead letter keeps the count, and
    with it the flag redelivered in the queue that stores it next (RabbitMQ: measured on 4.3.6)."""
    quorum: QuorumChoices = part(QuorumChoices)
    """The choices for quorum queues."""
    branches: BranchChoices = part(BranchChoices)
    """The choices for branches of distributed transactions."""

    # --- messages --------------------------------------------------------------------------------
    prefetch_is_per_consumer: bool = choice(True, {SPEC: False})
    """basic.qos/global-connection: without global the limit is for each new consumer, with global for the
    whole channel."""
    refuses_denied_global_qos: bool = choice(False)
    """If the deprecated feature global_qos is denied, a shared limit is refused: 541, connection.

    Otherwise it silently becomes a limit for each consumer (RabbitMQ: measured on 4.3.6).
    """
    shared_limit_holds_no_ack: bool = choice(True, {SPEC: False})
    """basic.qos/no-ack-exempt: a shared limit that is full holds back consumers without acknowledgements too;
    their deliveries do not count (RabbitMQ: measured on 3.10.8, 4.0.5 and 4.3.6)."""
    shared_limit_counts_all_held: bool = choice(True, {SPEC: False})
    """A new shared limit counts all messages that its channel holds, those of quorum queues too. Those of
    basic.get count until the limit is lifted, even if they are settled (RabbitMQ: measured as above)."""
    tags_are_inherited: bool = choice(True, {SPEC: False})
    """A consumer takes over what a cancelled one of its queue with its tag still holds: settling that refills
    its credit (RabbitMQ: measured on 3.10.8, 4.0.5 and 4.3.6)."""
    matches_last_header: bool = choice(True, {ONLY_3_10 | SPEC: False})
    """exchange-type.headers/*: of several headers with one name the last is matched and hashed; otherwise the
    first (RabbitMQ: measured on 4.0.5 and 4.3.6; its source has the same since 3.13)."""
    honours_prefetch_size: bool = choice(False, {SPEC: True})
    """basic.qos/prefetch-size-*."""
    honours_client_flow: bool = choice(False, {SPEC: True})
    """channel.flow/*."""
    throttles_with_flow: bool = choice(False, {SPEC: True})
    """channel.flow/throttling: publishers are throttled with channel.flow as well."""
    honours_no_local: bool = choice(False, {SPEC: True})
    """domain.no-local/*."""
    honours_immediate: bool = choice(False, {SPEC: True})
    """basic.publish/immediate-*."""
    exclusive_consumer_blocks_get: bool = choice(False, {SPEC: True})
    """basic.get/exclusive-consumer."""
    recovers_to_original_consumer: bool = choice(False, {SPEC: True})
    """basic.recover/requeue-false."""
    rejected_avoids_same_channel: bool = choice(False, {SPEC: True})
    """basic.reject/requeue-01."""
    most_deliveries: int = choice(0, {SPEC: 5})
    """basic.deliver/01: a message returned unsettled this often is dead-lettered; 0 = no limit."""
    queues_have_priorities: bool = choice(False, {SPEC: True})
    """basic/06: every queue orders by priority, not just queues declared with x-max-priority."""
    discards_low_priority_first: bool = choice(False, {SPEC: True})
    """server-model/discard-low-priority-first: a full queue drops its least urgent message, not its head."""
    dead_letters_deleted: bool = choice(False, {SPEC: True})
    """queue.delete/01: the messages of a deleted queue go to its dead-letter exchange."""
    expiration_is_ttl: bool = choice(True, {SPEC: False})
    """basic/property-expiration."""
    rewrites_expirations: bool = choice(True, {ONLY_3_10: False})
    """Consumers get the property expiration as a plain number: 500 for 0500 (RabbitMQ: measured on 4.0.5 and
    4.3.6, and that 3.10.8 does not; since 3.13)."""
    checks_user_id: bool = choice(True, {SPEC: False})
    """basic/property-user-id."""
    routes_by_cc_headers: bool = choice(True, {SPEC: False})
    """Sender-selected distribution: headers CC and BCC (RabbitMQ: documented extension)."""
    direct_reply_to: bool = choice(True, {SPEC: False})
    """The pseudo-queue amq.rabbitmq.reply-to (RabbitMQ: documented extension)."""
    refuses_binding_replies: bool = choice(True, {UNTIL_4_1 | SPEC: False})
    """Binding or unbinding a reply address is refused; otherwise it is an unknown queue."""
    replies_are_routed: bool = choice(True, {UNTIL_4_1: False})
    """A reply to a live reply address counts as routed: `mandatory` does not return it."""
    replies_count_tags: bool = choice(True, {UNTIL_4_1: False})
    """Each direct reply has a delivery tag of its own; otherwise all have the next unused tag."""
    publish_checks: tuple[str, ...] = choice(
        ("reply-to", "expiration", "copies", "topic-permission", "user-id", "deaths"),
        {
            ONLY_3_10: (*_CHECKS_3_10, "delivery-mode", "deaths"),
            ONLY_3_13: (*_CHECKS_3_10, "deaths"),
        },
    )
    """The checks of a publish's properties, in order; the topic permission is checked for the routing keys
    that are known by then. See `publishing`."""
    takes_deaths_from_clients: bool = choice(False, {UNTIL_3_13: True})
    """An x-death header from a client is the beginning of the message's history (RabbitMQ: until 3.13, pull
    request 11339)."""
    keeps_claimed_deaths: bool = choice(False, {ONLY_3_10: True})
    """The entries of an x-death header from a client stay as they are, also incomplete ones; otherwise they
    are written anew or left out (RabbitMQ: the former measured on 3.10.8)."""
    tells_last_death: bool = choice(True, {ONLY_3_10: False})
    """Dead letters have the headers x-last-death-exchange, -queue and -reason (RabbitMQ: measured on 4.0.5
    and 4.3.6, and that 3.10.8 does not)."""
    sorts_deaths: bool = choice(False, {ONLY_3_10: True})
    """In an entry of x-death original-expiration is the last field, and a death that is not the first one
    sorts the fields of its entry, and turns the order of the other entries around; otherwise
    original-expiration is the first field, and all entries have one order (RabbitMQ: the former measured on
    3.10.8)."""
    paused_consumers_count: bool = choice(True, {SPEC: False})
    """queue.declare-ok/consumer-count: consumers paused by channel.flow are counted."""
    consumer_timeout: float = choice(1800.0, {SPEC: 0.0})
    """The default acknowledgement timeout; 0 means none."""
    channels_time_out: bool = choice(True, {SINCE_4_3 | SPEC: False})
    """The acknowledgement timeout closes the channel (RabbitMQ: documented, up to 4.2)."""
    largest_content: int = choice(512 * _MIB, {UNTIL_4_1 | SPEC: 0})
    """types/max-content-size: bytes of body a content header may announce; 0 = no limit."""
    largest_message: int = choice(16 * _MIB, {UNTIL_3_13: 128 * _MIB, SPEC: 0})
    """reply-code/content-too-large: bytes of body; 0 = no limit."""
    largest_message_condition: str = choice("precondition-failed", {SPEC: "content-too-large"})
    """reply-code/content-too-large: condition raised beyond it."""

    confirms_unroutable_at_once: bool = choice(True, {SPEC: False})
    """An unroutable publish is confirmed at once and by itself; otherwise with others at the end of the turn
    (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
    commit_to_deleted: Literal["ignored", "by name", "partial", "fails"] = choice(
        "fails", {ONLY_3_10: "by name", ONLY_3_13 | ONLY_4_0 | ONLY_4_1: "partial", SPEC: "ignored"}
    )
    """tx.commit-ok/failure: a commit whose message was routed to a queue that is deleted since ignores it;
    sends the message to the queue that has the name by then, or returns it if there is none; publishes the
    rest and ends the channel with 406; or, unless the name is in use again, ends the connection with 506
    before anything is published (RabbitMQ: by name measured on 3.10.8, 406 on 4.0.5, where it is about
    classic queues only, 506 on 4.3.6, and in the tagged source of 4.2.9)."""
    commits_gradually: bool = choice(True, {SPEC: False})
    """tx/atomic-single-queue: other clients may see a part of the publishes of a commit before the rest
    (RabbitMQ: measured on 4.0.5 and 4.3.6, with 9 999 publishes to one queue)."""
    most_uncommitted_publishes: int = choice(0, {SINCE_4_3: 10_000})
    """tx.select/sets-mode: a transaction takes so many publishes, and the next one closes the channel with
    406; 0 = no limit (RabbitMQ: measured on 4.3.6, and no limit on 4.0.5)."""
    checks_utf8: Literal["no", "loosely", "strictly"] = choice("loosely", {SINCE_4_3: "strictly", SPEC: "no"})
    """Short strings of methods other than basic.publish must be UTF-8: 501, connection. Loosely, surrogates
    are taken as well (RabbitMQ: measured on 4.0.5, where loosely, and 4.3.6)."""
    compares_widths: bool = choice(True, {SPEC: False})
    """queue.unbind/arguments-identify, exchange-type.headers/*: the width of integers in arguments is part of
    a binding's identity, and width and order count in the tables and arrays that headers exchanges compare
    (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
    compares_ages: bool = choice(False, {SINCE_4_3: True})
    """queue.declare/passive-equivalent: `x-max-age` is compared in milliseconds (RabbitMQ: measured on
    4.3.6)."""
    refuses_bogus_replies: bool = choice(True, {UNTIL_4_1: False})
    """A declaration of a reply address that the broker cannot have made fails with 541 (RabbitMQ: measured on
    4.3.6)."""
    returns_late_replies: bool = choice(False, {UNTIL_4_1: True})
    """A mandatory reply to a consumer that is gone is returned (RabbitMQ: until 4.2, measured)."""

    # --- policies, limits and definitions ----------------------------------------------------------
    policy_keys: tuple[str, ...] = derived(policy_keys)
    """The keys of policies."""
    operator_policy_keys: tuple[str, ...] = derived(lambda name: policy_keys(name, operator=True))
    """The keys of operator policies."""
    foreign_policy_keys: Mapping[str, tuple[str, ...]] = derived(foreign_policy_keys)
    """By queue type, the keys with which a policy as a whole does not apply to queues of the type."""
    longest_pattern: int = choice(1024, {UNTIL_4_1: 0})
    """Bytes in the pattern of a policy; 0 = no limit (RabbitMQ: 1024 since 4.2)."""
    policy_decides_expiry: tuple[str, ...] = choice((), {UNTIL_3_13: ("quorum",)})
    """Queue types for which a policy's `expires` overrides the argument; otherwise the shorter counts."""
    negative_delivery_limit: bool = choice(True, {UNTIL_3_13: False})
    """A policy's `delivery-limit` may be negative, which means no limit (RabbitMQ: since 4.0)."""
    connection_limit_condition: str = choice("not-allowed", {SPEC: "resource-error"})
    """connection.open/vhost-limits: condition raised."""
    queue_limit_condition: str = choice("precondition-failed", {SPEC: "resource-error"})
    """reply-code/resource-error: condition raised if a virtual host may have no more queues."""
    channel_limit_text: str = choice(
        _TOO_MANY_CHANNELS.format("{user}", "{limit}"),
        {
            ONLY_3_10: _TOO_MANY_CHANNELS.format("{user}", "({limit})"),
            ONLY_3_13 | ONLY_4_0 | ONLY_4_1: _TOO_MANY_CHANNELS.format("{node}", "({limit})"),
        },
        any_text=True,
    )
    """The text of the error for too many channels of a user, with `user`, `node` and `limit`."""
    remembers_queue_type: Literal["never", "by default", "always"] = choice(
        "always", {UNTIL_3_13: "by default", SPEC: "never"}
    )
    """The arguments of a queue declared without x-queue-type are completed with the type that was chosen;
    "by default" means: if the virtual host has a default queue type of its own."""
    names_default_queue_type: bool = choice(True, {UNTIL_4_0 | SPEC: False})
    """The metadata of new virtual hosts name classic as the default queue type (RabbitMQ: 4.2)."""
    definitions_name_format: bool = choice(True, {UNTIL_3_13 | SPEC: False})
    """Definitions contain their format and the name of their cluster (RabbitMQ: since 4.0)."""
    definitions_repeat_queue_type: bool = choice(False, {ONLY_4_0: True})
    """Definitions repeat default_queue_type outside a virtual host's metadata (RabbitMQ: 4.0)."""
    limits_are_pairs: bool = choice(False, {UNTIL_4_1: True})
    """Definitions have the limits of a virtual host as a list of pairs (RabbitMQ: until 4.0, measured)."""

    # --- identity and extensions -----------------------------------------------------------------
    new_secret_is_checked: bool = choice(True, {UNTIL_4_1 | SPEC: False})
    """connection.update-secret checks permissions again: without access to the virtual host the connection
    is closed, without permission to read a consumer is cancelled (RabbitMQ: since 4.2)."""
    announces_host: bool = choice(False, {SPEC: True})
    """connection.start/server-properties-required-fields."""
    capabilities: tuple[str, ...] = choice(_EXTENSIONS, {SPEC: _EXTENSIONS[:6]}, any_text=True)
    """Keys announced as true in server-properties' capabilities table."""
    mechanisms: tuple[str, ...] = choice(
        ("PLAIN", "AMQPLAIN", "ANONYMOUS"),
        {
            UNTIL_3_13: ("PLAIN", "AMQPLAIN"),
            ONLY_4_0 | ONLY_4_1: ("AMQPLAIN", "ANONYMOUS", "PLAIN"),
            SINCE_4_3: ("AMQPLAIN", "PLAIN", "ANONYMOUS"),
        },
    )
    """connection.start/mechanisms, in the order in which they are offered: that of a node without settings.

    In RabbitMQ it is the order of a hash table of atoms (tagged source of 4.0), which the setting
    auth_mechanisms changes. EXTERNAL has no place of its own: over TLS, 4.3.6 offered `AMQPLAIN ANONYMOUS
    EXTERNAL PLAIN` for one setting and `PLAIN EXTERNAL AMQPLAIN` for another, 4.0.5 `AMQPLAIN PLAIN ANONYMOUS
    EXTERNAL` (measured)."""
    refuses_unknown_locales: bool = choice(False, {SPEC: True})
    """connection.start-ok/locale-one-offered: a locale that was not offered ends the login (RabbitMQ: any is
    accepted, measured on 3.10.8, 4.0.5 and 4.3.6)."""
    channel_max: int = choice(2047, most=0xFFFF)
    frame_max: int = choice(131072, most=0xFFFF_FFFF)
    heartbeat: int = choice(60, most=0xFFFF)
    loopback_users: tuple[str, ...] = choice(("guest",), any_text=True)
    """The accounts that may log in from loopback addresses only; empty for none (RabbitMQ: its setting of the
    same name)."""
    most_failed_logins: int = choice(0, {SPEC: 100})
    """security/log-and-block: the failed logins in a row with which an address is blocked; 0 = no limit
    (RabbitMQ: it has none)."""
    login_block_time: float = choice(60.0)
    """security/log-and-block: for how many seconds of the broker's clock an address is blocked."""
    not_implemented: tuple[str, ...] = choice((), any_text=True)
    """tx/optional-class, dtx/optional and similar rules: the classes and methods, such as "dtx" or
    "channel.resume", that the broker is made without: 540 in every protocol that has them."""
    extensions: Mapping[type, object] = derived(lambda _: {}, any_text=True)
    """Choices that concern one protocol only, by the class of its record; empty for the usual ones of this
    personality. See `extension`."""

    def with_(self, **choices: Unpack[PersonalityChoices]) -> Personality:
        """This personality with some choices made otherwise. Lists in place of tuples become tuples.

        Raises:
            UnknownChoice: there is no choice of this name; the text names the nearest match.
            BrokerError: a choice has a wrong type or value.
        """
        from fakeamqp.model.personality.variants import with_choices

        return with_choices(self, choices)

    def extension(self, record: type[R]) -> R:
        """The choices that concern one protocol, or the management API, only.

        `record` is their class. Where `extensions` has none of it, they are those of the personality's name.
        """
        found = self.extensions.get(record)
        return found if isinstance(found, record) else made(record, self.name)

    def differences(self, other: Personality) -> tuple[ChoiceDifference, ...]:
        """The choices in which `other` differs from this personality, in the order of this documentation."""
        from fakeamqp.model.personality.variants import differences

        return differences(self, other)

    def adopting(self, other: Personality, names: Iterable[str]) -> Personality:
        """This personality with the choices of these names as `other` makes them.

        Args:
            other: the personality to take the choices from.
            names: of choices in which the two differ, as `differences` names them.

        Raises:
            UnknownChoice: the two do not differ in a choice of this name; the text names the nearest match.
        """
        from fakeamqp.model.personality.variants import adopted

        return adopted(self, other, names)


class UnknownPersonality(FakeAMQPError):
    """No personality has this name."""

    __module__ = "fakeamqp.errors"


PERSONALITIES: dict[str, Personality] = {name: made(Personality, name) for name in NAMES}

_NUMBER = re.compile(r"(?:rabbitmq)?[- _v]*(\d+(?:\.\d+)*)", re.IGNORECASE)


def personality(name: str | Personality) -> Personality:
    """The personality called `name`; a record is itself. UnknownPersonality names the nearest match."""
    if isinstance(name, Personality):
        return name
    found = PERSONALITIES.get(name) if isinstance(name, str) else None
    if found is None:
        raise UnknownPersonality(f"no personality {name!r}{_hint(name)} Known: {', '.join(PERSONALITIES)}")
    return found


def _hint(name: object) -> str:
    """What a name may mean: a series by its number, or else the one before and the one after it."""
    asked = _NUMBER.fullmatch(str(name).strip())
    if asked is None:
        near = nearest(name, PERSONALITIES)
        return f"; did you mean {near[0]!r}?" if near else "."
    releases = [each for each in PERSONALITIES.values() if each.product == "RabbitMQ"]
    series = {_series(each.version): repr(each.name) for each in releases}
    wanted = _series(asked[1])
    fitting = [name for number, name in series.items() if number[: len(wanted)] == wanted]
    if fitting:
        return f"; did you mean {fitting[-1]}?"
    before = [name for number, name in series.items() if number < wanted]
    after = [name for number, name in series.items() if number > wanted]
    around = [*before[-1:], *after[:1]]
    return f"; nearest to RabbitMQ {asked[1]} {'are' if len(around) > 1 else 'is'} {' and '.join(around)}."


def _series(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".")[:2])
