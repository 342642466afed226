"""The choices of a personality: every behaviour in which the specifications and released brokers differ.

A personality is data: a frozen record of named choices that the model and the protocols read. Code never
compares versions. Each choice names the rules it decides. The records are in `records`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from fakeamqp.model.personality.branches import BranchChoices
from fakeamqp.model.personality.quorum import QuorumChoices

if TYPE_CHECKING:
    from fakeamqp.model.personality.differences import ChoiceDifference

__all__ = ["Personality", "Phase"]

Phase: TypeAlias = Literal["permitted", "denied", "removed"]
"""The default state of a deprecated feature. A removed feature cannot be permitted."""


@dataclass(frozen=True)
class Personality:
    """Named choices. Sizes are bytes, times seconds, limits counts; 0 or None means no limit."""

    name: str
    product: str
    version: str

    # --- wire ------------------------------------------------------------------------------------
    header_for_others: bytes
    """protocol-header/version-mismatch: the protocol header that answers one of no known protocol."""
    awaits_whole_header: bool
    """protocol-header/not-amqp: bytes that cannot become a protocol header wait for the eighth."""
    explains_malformed_input: bool
    """errors/*: malformed input is refused with a text that explains it; otherwise with its bytes as an
    Erlang term, with 541, or by closing the socket (RabbitMQ: measured)."""
    closes_silently_on_bad_frames: bool
    """frame/unknown-type, frame/bad-frame-end: close the socket without connection.close."""
    reports_errors_from: Literal["tuned", "open"]
    """errors/pre-open-error: before this state the socket is closed without connection.close."""
    frame_size_tolerance: int
    """frame/oversized-receive: bytes by which a frame may exceed frame-max."""
    sends_oversized_headers: bool
    """frame/oversized-send: a content header that exceeds the client's frame-max is sent (RabbitMQ: measured
    on 3.10.8 and 4.3.6); otherwise the connection is closed with 501."""
    smallest_frame_max: int
    """connection.tune-ok/frame-max-minimum."""
    published_field_grammar: bool
    """types/*: tags of the published grammar instead of those in common use; names are validated."""
    heartbeat_off_channel_zero: str
    """heartbeat/channel-zero: condition raised."""
    heartbeat_ticks: bool
    """heartbeat/interval, heartbeat/missed-two: the broker looks at what was sent every half interval, and
    sends a heartbeat after every idle half and after the first one; it looks at what was received every
    interval, and ends the connection after two looks in a row without new bytes, 2 to 3 intervals after the
    last one. Otherwise it sends one per idle interval, and ends the connection after two (RabbitMQ: measured
    on 4.0.5 and 4.3.6)."""
    send_timeout: float
    """How many seconds a client may take none of the output that waits for it; then its connection is reset.
    0 means no limit (RabbitMQ: measured on 3.10.8, 4.0.5 and 4.3.6, with and without heartbeats)."""
    content_on_channel_zero: str
    """content/channel-zero: condition raised."""
    content_on_closed_channel: str
    """channel/not-open: condition raised for a content header or body; methods always get channel-error."""
    content_class_mismatch: str
    """content/class-id-matches: condition raised."""
    body_overrun: str
    """content/body-overrun: condition raised; empty if excess bytes are accepted, and never complete."""
    refuses_open_before_close_ok: bool
    """channel.close/stability: a channel.open before the awaited close-ok is an error, not discarded."""
    channel_above_maximum: str
    """channel.open/above-channel-max: condition raised."""
    channel_max_limits: Literal["count", "number"]
    """connection.tune/channel-max-meaning: the number of open channels, or the highest channel number."""
    client_ends_closed_transport: bool
    """connection.close-ok/socket-closed-after: wait for a client that requested the close to do so."""
    connection_method_out_of_order: str
    """reply-code/command-invalid, channels/no-vhost-switch: condition raised on an open connection."""
    unknown_virtual_host: str
    """connection.open/unknown-vhost: condition raised."""
    takes_cancel_ok: bool
    """basic.cancel-ok from a client cancels the consumer as basic.cancel does, without an answer, and an
    unknown tag ends the connection with 541 (RabbitMQ: measured on 4.3.6)."""

    prints_utf8: bool
    """errors/*: the bytes of malformed input, as an Erlang term, are text if they are UTF-8; otherwise only
    what Latin-1 can print is text, and sent byte by byte (RabbitMQ: the latter measured on 3.10.8)."""
    rewrites_headers: bool
    """Consumers get the headers of a message sorted by name, of several with one name the first, and int64
    with the tag l (RabbitMQ: measured on 4.0.5 and 4.3.6, and that 3.10.8 does not; since 3.13)."""
    sorts_headers: bool
    """Where the broker adds a header, such as `x-death`, it sorts all of them by name (RabbitMQ: measured on
    3.10.8, 4.0.5 and 4.3.6)."""
    refusals_name_permission: bool
    """The text of a refused permission names the one that is missing: configure, write or read (RabbitMQ:
    measured on 4.0.5 and 4.3.6, and that 3.10.8 does not)."""

    # --- names and declarations --------------------------------------------------------------------
    longest_name: int
    """domain.*/length: bytes in the name of a queue, exchange or virtual host."""
    restricts_names: bool
    """domain.*/pattern: letters, digits, hyphen, underscore, period and colon only."""
    reserved_queue_redeclarable: bool
    """queue.declare/queue-reserved: an existing amq. queue may be declared again, not just passively."""
    passive_declare_needs_permission: bool
    """A passive declare needs some permission on the name (RabbitMQ: since 4.2.7)."""
    has_trace_exchange: bool
    """Every virtual host has the internal exchange amq.rabbitmq.trace (RabbitMQ: measured)."""
    has_log_exchange: bool
    """The virtual host / has the internal exchange amq.rabbitmq.log (RabbitMQ: measured on 4.3.6)."""
    transient_exchanges_survive: bool
    """exchange.declare/durable-survives: a restart keeps exchanges that are not durable (RabbitMQ: measured
    on 4.3.6, and on 4.0.5 with Khepri, the usual metadata store since 4.2)."""
    restart_keeps_unbound_exchanges: bool
    """A durable auto-delete exchange stays when a restart takes its last binding (RabbitMQ: measured on 3.10
    and 4.0.5; not with Khepri, the usual metadata store since 4.2)."""
    default_exchange_bindable: bool
    """queue.bind/exchange-default-exchange."""
    type_mismatch_ends_connection: bool
    """exchange.declare/type-typed: 530 for the connection instead of 406 for the channel."""
    unknown_exchange_type: str
    """exchange.declare/type-support: condition raised."""
    passive_no_wait_is_silent: bool
    """*.declare/passive-no-wait: no error for a missing entity."""
    exchange_flags_reserved: bool
    """exchange.declare/reserved-flags: auto-delete and internal are ignored."""
    deleting_missing_is_an_error: bool
    """exchange.delete/exchange-exists, queue.delete/queue-must-exist."""
    unbinding_missing_is_an_error: bool
    """queue.unbind/01 and its must-exist rules."""
    compares_auto_delete: bool
    """queue.declare/auto-delete-pre-existence."""
    equivalence_ignores_unknown_arguments: bool
    """*.declare/passive-equivalent: only arguments known to the broker are compared."""
    most_topic_wildcards: int
    """How many words of a topic binding's key may be `#`; 0 = any number (RabbitMQ: 2 since 4.3.5)."""
    timestamps_match_in_milliseconds: bool
    """A headers exchange multiplies a message's timestamps by 1000, but not those of a binding."""
    numbers_match_by_value: bool
    """In a headers exchange 1 matches 1.0 (RabbitMQ: measured on 3.10.8)."""
    duplicates_match_in_turn: bool
    """A headers exchange compares the first field of a name in a binding with the first one in the message,
    the second with the second, and so on (RabbitMQ: measured on 3.10.8); otherwise each with the first."""
    exchange_types: tuple[str, ...]
    """exchange.declare/type-support, exchange/extensions: the supported types."""
    invalid_exchange_types: tuple[str, ...]
    """Types reported as invalid instead of unknown: atoms that RabbitMQ's runtime knows (measured)."""
    bindings_sorted_by: Literal["key", "age", "destination"]
    """The order in which x-modulus-hash counts its bindings. By key, a restart also re-sorts hash rings."""
    largest_hash_weight: int
    """The largest binding key of x-consistent-hash; 0 = any number (RabbitMQ: 10000 since 4.2)."""
    hashes_empty_headers: bool
    """x-consistent-hash can hash an empty table or array (RabbitMQ: fails before 4.3)."""
    deprecated_features: Mapping[str, Phase]
    """The deprecated features known to the broker, and their default states: see `features`."""

    # --- queues ------------------------------------------------------------------------------------
    queue_arguments: Mapping[str, tuple[str, ...]]
    """queue.declare/arguments-implementation: by queue type, the arguments that mean something there."""
    consumer_arguments: Mapping[str, tuple[str, ...]]
    """By queue type, the arguments of basic.consume that mean something there."""
    removed_queue_arguments: tuple[str, ...]
    """queue.declare/arguments-implementation: arguments that no queue can be declared with any more."""
    argument_values: Mapping[str, tuple[str | int, ...]]
    """The legal values of arguments that take but a few; one not named here takes any."""
    validates_consumer_timeout: bool
    """An invalid x-consumer-timeout is refused; otherwise it is ignored (RabbitMQ: since 4.3)."""
    crashes_on_locators: bool
    """An x-queue-master-locator that names no strategy closes the connection with 541 (RabbitMQ: measured on
    3.10.8)."""
    absent_queue_types: tuple[str, ...]
    """Values of x-queue-type that are ignored."""
    crashes_on_ages: bool
    """An age that does not begin with a digit closes the connection with 541."""
    stream_filter_size_refusal: str
    """The text for an x-stream-filter-size-bytes out of range, looked at once the flags are right."""
    streams_rewrite_properties: bool
    """Streams deliver messages with the properties that AMQP 1.0 can express (RabbitMQ: documented)."""
    streams_annotate: bool
    """A stream keeps headers with names that begin with x- as annotations, which may be tables and arrays,
    returns bytes in headers as text, and every message with a delivery_mode; otherwise it keeps neither
    tables nor arrays, and changes nothing else (RabbitMQ: the latter measured on 3.10.8)."""
    streams_refuse_rejects: bool
    """basic.reject and basic.nack of a stream's delivery close the connection with 540; otherwise they settle
    it (RabbitMQ: the former measured on 3.10.8)."""
    stream_consumer_terms: tuple[str, str]
    """How the errors for a consumer without a prefetch limit, and for one without acknowledgements, name
    streams."""
    single_active_get_refusal: str
    """How the error for basic.get on a queue with a single active consumer names the queue type."""
    classic_failures: tuple[str, ...]
    """The outcomes of deliveries that classic queues count as failures. A dead letter keeps the count, and
    with it the flag redelivered in the queue that stores it next (RabbitMQ: measured on 4.3.6)."""
    quorum: QuorumChoices
    """The choices for quorum queues."""
    branches: BranchChoices
    """The choices for branches of distributed transactions."""

    # --- messages --------------------------------------------------------------------------------
    prefetch_is_per_consumer: bool
    """basic.qos/global-connection: without global the limit is for each new consumer, with global for the
    whole channel."""
    refuses_denied_global_qos: bool
    """If the deprecated feature global_qos is denied, a shared limit is refused: 541, connection.

    Otherwise it silently becomes a limit for each consumer (RabbitMQ: measured on 4.3.6).
    """
    shared_limit_holds_no_ack: bool
    """basic.qos/no-ack-exempt: a shared limit that is full holds back consumers without acknowledgements too;
    their deliveries do not count (RabbitMQ: measured on 3.10.8, 4.0.5 and 4.3.6)."""
    shared_limit_counts_all_held: bool
    """A new shared limit counts all messages that its channel holds, those of quorum queues too. Those of
    basic.get take room until the limit is lifted, even if they are settled (RabbitMQ: measured as above)."""
    tags_are_inherited: bool
    """A consumer takes over what a cancelled one of its queue with its tag still holds: settling that refills
    its credit (RabbitMQ: measured on 3.10.8, 4.0.5 and 4.3.6)."""
    matches_last_header: bool
    """exchange-type.headers/*: of several headers with one name the last is matched and hashed; otherwise the
    first (RabbitMQ: measured on 4.0.5 and 4.3.6; its source has the same since 3.13)."""
    honours_prefetch_size: bool
    """basic.qos/prefetch-size-*."""
    honours_client_flow: bool
    """channel.flow/*."""
    throttles_with_flow: bool
    """channel.flow/throttling: publishers are throttled with channel.flow as well."""
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
    """basic.deliver/01: a message returned unsettled this often is dead-lettered; 0 = no limit."""
    queues_have_priorities: bool
    """basic/06: every queue orders by priority, not just queues declared with x-max-priority."""
    discards_low_priority_first: bool
    """server-model/discard-low-priority-first: a full queue drops its least urgent message, not its head."""
    dead_letters_deleted: bool
    """queue.delete/01: the messages of a deleted queue go to its dead-letter exchange."""
    expiration_is_ttl: bool
    """basic/property-expiration."""
    rewrites_expirations: bool
    """Consumers get the property expiration as a plain number: 500 for 0500 (RabbitMQ: measured on 4.0.5 and
    4.3.6, and that 3.10.8 does not; since 3.13)."""
    checks_user_id: bool
    """basic/property-user-id."""
    routes_by_cc_headers: bool
    """Sender-selected distribution: headers CC and BCC (RabbitMQ: documented extension)."""
    direct_reply_to: bool
    """The pseudo-queue amq.rabbitmq.reply-to (RabbitMQ: documented extension)."""
    refuses_binding_replies: bool
    """Binding or unbinding a reply address is refused; otherwise it is an unknown queue."""
    replies_are_routed: bool
    """A reply to a live reply address counts as routed: `mandatory` does not return it."""
    replies_count_tags: bool
    """Each direct reply has a delivery tag of its own; otherwise all have the next unused tag."""
    publish_checks: tuple[str, ...]
    """The checks of a publish's properties, in order; the topic permission is checked for the routing keys
    that are known by then. See `publishing`."""
    takes_deaths_from_clients: bool
    """An x-death header from a client is the beginning of the message's history (RabbitMQ: until 3.13, pull
    request 11339)."""
    keeps_claimed_deaths: bool
    """The entries of an x-death header from a client stay as they are, also incomplete ones; otherwise they
    are written anew or left out (RabbitMQ: the former measured on 3.10.8)."""
    tells_last_death: bool
    """Dead letters have the headers x-last-death-exchange, -queue and -reason (RabbitMQ: measured on 4.0.5
    and 4.3.6, and that 3.10.8 does not)."""
    sorts_deaths: bool
    """In an entry of x-death original-expiration is the last field, and a death that is not the first one
    sorts the fields of its entry, and turns the order of the other entries around; otherwise
    original-expiration is the first field, and all entries have one order (RabbitMQ: the former measured on
    3.10.8)."""
    paused_consumers_count: bool
    """queue.declare-ok/consumer-count: consumers paused by channel.flow are counted."""
    consumer_timeout: float
    """The default acknowledgement timeout; 0 means none."""
    channels_time_out: bool
    """The acknowledgement timeout closes the channel (RabbitMQ: documented, up to 4.2)."""
    largest_content: int
    """types/max-content-size: bytes of body a content header may announce; 0 = no limit."""
    largest_message: int
    """reply-code/content-too-large: bytes of body; 0 = no limit."""
    largest_message_condition: str
    """reply-code/content-too-large: condition raised beyond it."""

    confirms_unroutable_at_once: bool
    """An unroutable publish is confirmed at once and by itself; otherwise with others at the end of the turn
    (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
    commit_to_deleted: Literal["ignored", "by name", "partial", "fails"]
    """tx.commit-ok/failure: a commit whose message was routed to a queue that is deleted since ignores it;
    sends the message to the queue that has the name by then, or returns it if there is none; publishes the
    rest and ends the channel with 406; or, unless the name is in use again, ends the connection with 506
    before anything is published (RabbitMQ: by name measured on 3.10.8, 406 on 4.0.5, where it is about
    classic queues only, 506 on 4.3.6, and in the tagged source of 4.2.9)."""
    commits_gradually: bool
    """tx/atomic-single-queue: other clients may see a part of the publishes of a commit before the rest
    (RabbitMQ: measured on 4.0.5 and 4.3.6, with 9 999 publishes to one queue)."""
    most_uncommitted_publishes: int
    """tx.select/sets-mode: a transaction takes so many publishes, and the next one closes the channel with
    406; 0 = no limit (RabbitMQ: measured on 4.3.6, and no limit on 4.0.5)."""
    checks_utf8: Literal["no", "loosely", "strictly"]
    """Short strings of methods other than basic.publish must be UTF-8: 501, connection. Loosely, surrogates
    are taken as well (RabbitMQ: measured on 4.0.5, where loosely, and 4.3.6)."""
    compares_widths: bool
    """queue.unbind/arguments-identify, exchange-type.headers/*: the width of integers in arguments is part of
    a binding's identity, and width and order count in the tables and arrays that headers exchanges compare
    (RabbitMQ: measured on 4.0.5 and 4.3.6)."""
    compares_ages: bool
    """queue.declare/passive-equivalent: `x-max-age` is compared in milliseconds (RabbitMQ: measured on
    4.3.6)."""
    refuses_bogus_replies: bool
    """A declaration of a reply address that the broker cannot have made fails with 541 (RabbitMQ: measured on
    4.3.6)."""
    returns_late_replies: bool
    """A mandatory reply to a consumer that is gone is returned (RabbitMQ: until 4.2, measured)."""

    # --- policies, limits and definitions ----------------------------------------------------------
    policy_keys: tuple[str, ...]
    """The keys of policies."""
    operator_policy_keys: tuple[str, ...]
    """The keys of operator policies."""
    foreign_policy_keys: Mapping[str, tuple[str, ...]]
    """By queue type, the keys with which a policy as a whole does not apply to queues of the type."""
    longest_pattern: int
    """Bytes in the pattern of a policy; 0 = no limit (RabbitMQ: 1024 since 4.2)."""
    policy_decides_expiry: tuple[str, ...]
    """Queue types for which a policy's `expires` overrides the argument; otherwise the shorter counts."""
    negative_delivery_limit: bool
    """A policy's `delivery-limit` may be negative, which means no limit (RabbitMQ: since 4.0)."""
    connection_limit_condition: str
    """connection.open/vhost-limits: condition raised."""
    queue_limit_condition: str
    """reply-code/resource-error: condition raised if a virtual host may have no more queues."""
    channel_limit_text: str
    """The text of the error for too many channels of a user, with `user`, `node` and `limit`."""
    remembers_queue_type: Literal["never", "by default", "always"]
    """The arguments of a queue declared without x-queue-type are completed with the type that was chosen;
    "by default" means: if the virtual host has a default queue type of its own."""
    names_default_queue_type: bool
    """The metadata of new virtual hosts name classic as the default queue type (RabbitMQ: 4.2)."""
    definitions_name_format: bool
    """Definitions contain their format and the name of their cluster (RabbitMQ: since 4.0)."""
    definitions_repeat_queue_type: bool
    """Definitions repeat default_queue_type outside a virtual host's metadata (RabbitMQ: 4.0)."""
    limits_are_pairs: bool
    """Definitions have the limits of a virtual host as a list of pairs (RabbitMQ: until 4.0, measured)."""

    # --- identity and extensions -----------------------------------------------------------------
    new_secret_is_checked: bool
    """connection.update-secret checks permissions again: without access to the virtual host the connection
    is closed, without permission to read a consumer is cancelled (RabbitMQ: since 4.2)."""
    announces_host: bool
    """connection.start/server-properties-required-fields."""
    capabilities: tuple[str, ...]
    """Keys announced as true in server-properties' capabilities table."""
    mechanisms: tuple[str, ...] = ("PLAIN", "AMQPLAIN", "ANONYMOUS")
    """connection.start/mechanisms, in the order in which they are offered: that of a node without settings.

    In RabbitMQ it is the order of a hash table of atoms (tagged source of 4.0), which the setting
    auth_mechanisms changes. EXTERNAL has no place of its own: over TLS, 4.3.6 offered `AMQPLAIN ANONYMOUS
    EXTERNAL PLAIN` for one setting and `PLAIN EXTERNAL AMQPLAIN` for another, 4.0.5 `AMQPLAIN PLAIN ANONYMOUS
    EXTERNAL` (measured)."""
    refuses_unknown_locales: bool = False
    """connection.start-ok/locale-one-offered: a locale that was not offered ends the login (RabbitMQ: any is
    accepted, measured on 3.10.8, 4.0.5 and 4.3.6)."""
    channel_max: int = 2047
    frame_max: int = 131072
    heartbeat: int = 60
    loopback_users: tuple[str, ...] = ("guest",)
    """The accounts that may log in from loopback addresses only; empty for none (RabbitMQ: its setting of the
    same name)."""
    most_failed_logins: int = 0
    """security/log-and-block: the failed logins in a row with which an address is blocked; 0 = no limit
    (RabbitMQ: it has none)."""
    login_block_time: float = 60.0
    """security/log-and-block: for how many seconds of the broker's clock an address is blocked."""
    not_implemented: tuple[str, ...] = ()
    """tx/optional-class, dtx/optional and similar rules: the classes and methods, such as "dtx" or
    "channel.resume", that the broker is made without: 540 in every protocol that has them."""
    extensions: Mapping[type, object] = field(default_factory=dict)
    """Choices that concern one protocol only, by the class of its record; empty for the usual ones of this
    personality. See `protocols.base.choices`."""

    def differences(self, other: Personality) -> tuple[ChoiceDifference, ...]:
        """The choices in which `other` differs from this personality, in the order of this documentation."""
        from fakeamqp.model.personality.differences import differences

        return differences(self, other)

    def adopting(self, other: Personality, names: Iterable[str]) -> Personality:
        """This personality with the choices of these names as `other` makes them.

        Args:
            other: the personality to take the choices from.
            names: of choices in which the two differ, as `differences` names them.

        Raises:
            UnknownChoice: the two do not differ in a choice of this name; the text names the nearest match.
        """
        from fakeamqp.model.personality.differences import adopted

        return adopted(self, other, names)
