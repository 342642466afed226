"""The personalities: several versions of RabbitMQ, and the specifications to the letter.

`RABBITMQ_4_2` is complete; the records of other versions contain their differences from it. Sources: the
documentation, release notes and behaviour of the released versions.
"""

from __future__ import annotations

import re
from dataclasses import replace

from fakeamqp.errors import FakeAMQPError, nearest
from fakeamqp.model.arguments.choices import argument_choices
from fakeamqp.model.personality.branches import BranchChoices
from fakeamqp.model.personality.choices import Personality, Phase
from fakeamqp.model.personality.quorum import QuorumChoices

__all__ = [
    "PERSONALITIES",
    "RABBITMQ_3_10",
    "RABBITMQ_3_13",
    "RABBITMQ_4_0",
    "RABBITMQ_4_1",
    "RABBITMQ_4_2",
    "RABBITMQ_4_3",
    "SPEC",
    "UnknownPersonality",
    "personality",
]

_MIB = 1024 * 1024

_HEADER_0_9_1 = b"AMQP\x00\x00\x09\x01"
_HEADER_1_0 = b"AMQP\x03\x01\x00\x00"
"""With SASL. RabbitMQ answers with it since 4.0 (measured)."""


class UnknownPersonality(FakeAMQPError):
    """No personality has this name."""


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

_DEPRECATED: dict[str, Phase] = {
    "transient_nonexcl_queues": "permitted",
    "global_qos": "permitted",
    "queue_master_locator": "permitted",
    "classic_queue_mirroring": "removed",
    "ram_node_type": "permitted",
    "management_metrics_collection": "permitted",
    "amqp_address_v1": "permitted",
    "amqp_filter_set_bug": "permitted",
}

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


def _without(names: tuple[str, ...], *gone: str) -> tuple[str, ...]:
    return tuple(name for name in names if name not in gone)


RABBITMQ_4_2 = Personality(
    name="rabbitmq-4.2",
    product="RabbitMQ",
    version="4.2.9",
    **argument_choices("rabbitmq-4.2"),
    header_for_others=_HEADER_1_0,
    awaits_whole_header=True,
    explains_malformed_input=False,
    closes_silently_on_bad_frames=False,
    reports_errors_from="tuned",
    frame_size_tolerance=8,
    sends_oversized_headers=True,
    smallest_frame_max=8192,
    published_field_grammar=False,
    heartbeat_off_channel_zero="unexpected-frame",
    heartbeat_ticks=True,
    send_timeout=30.0,
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
    takes_cancel_ok=False,
    prints_utf8=True,
    rewrites_headers=True,
    sorts_headers=True,
    refusals_name_permission=True,
    longest_name=255,
    restricts_names=False,
    reserved_queue_redeclarable=False,
    passive_declare_needs_permission=True,
    has_trace_exchange=True,
    has_log_exchange=False,
    transient_exchanges_survive=True,
    restart_keeps_unbound_exchanges=False,
    default_exchange_bindable=False,
    type_mismatch_ends_connection=False,
    unknown_exchange_type="precondition-failed",
    passive_no_wait_is_silent=False,
    exchange_flags_reserved=False,
    deleting_missing_is_an_error=False,
    unbinding_missing_is_an_error=False,
    compares_auto_delete=True,
    equivalence_ignores_unknown_arguments=True,
    most_topic_wildcards=0,
    timestamps_match_in_milliseconds=True,
    numbers_match_by_value=False,
    duplicates_match_in_turn=False,
    exchange_types=_EXCHANGES,
    invalid_exchange_types=_ERLANG_WORDS,
    bindings_sorted_by="age",
    largest_hash_weight=10_000,
    hashes_empty_headers=False,
    deprecated_features=_DEPRECATED,
    crashes_on_ages=False,
    stream_filter_size_refusal="Invalid value for x-stream-filter-size-bytes",
    streams_rewrite_properties=True,
    streams_annotate=True,
    streams_refuse_rejects=False,
    stream_consumer_terms=("stream {}", "stream {}"),
    validates_consumer_timeout=False,
    crashes_on_locators=False,
    absent_queue_types=("undefined", ""),
    single_active_get_refusal='<<"quorum">>',
    classic_failures=(),
    quorum=QuorumChoices(),
    branches=BranchChoices(),
    prefetch_is_per_consumer=True,
    refuses_denied_global_qos=False,
    shared_limit_holds_no_ack=True,
    shared_limit_counts_all_held=True,
    tags_are_inherited=True,
    matches_last_header=True,
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
    rewrites_expirations=True,
    checks_user_id=True,
    routes_by_cc_headers=True,
    direct_reply_to=True,
    refuses_binding_replies=True,
    replies_are_routed=True,
    replies_count_tags=True,
    publish_checks=("reply-to", "expiration", "copies", "topic-permission", "user-id", "deaths"),
    takes_deaths_from_clients=False,
    confirms_unroutable_at_once=True,
    commit_to_deleted="fails",
    commits_gradually=True,
    most_uncommitted_publishes=0,
    checks_utf8="loosely",
    compares_widths=True,
    compares_ages=False,
    refuses_bogus_replies=True,
    returns_late_replies=False,
    keeps_claimed_deaths=False,
    tells_last_death=True,
    sorts_deaths=False,
    paused_consumers_count=True,
    consumer_timeout=1800.0,
    channels_time_out=True,
    largest_content=512 * _MIB,
    largest_message=16 * _MIB,
    largest_message_condition="precondition-failed",
    longest_pattern=1024,
    policy_decides_expiry=(),
    negative_delivery_limit=True,
    connection_limit_condition="not-allowed",
    queue_limit_condition="precondition-failed",
    channel_limit_text=(
        "number of channels opened for user '{user}' has reached the maximum allowed user limit of {limit}"
    ),
    remembers_queue_type="always",
    names_default_queue_type=True,
    definitions_name_format=True,
    definitions_repeat_queue_type=False,
    limits_are_pairs=False,
    new_secret_is_checked=True,
    announces_host=False,
    capabilities=_EXTENSIONS,
)

RABBITMQ_4_0 = replace(
    RABBITMQ_4_2,
    name="rabbitmq-4.0",
    version="4.0.5",
    **argument_choices("rabbitmq-4.0"),
    smallest_frame_max=4096,
    body_overrun="",
    passive_declare_needs_permission=False,
    transient_exchanges_survive=False,
    restart_keeps_unbound_exchanges=True,
    bindings_sorted_by="key",
    largest_hash_weight=0,
    deprecated_features={name: phase for name, phase in _DEPRECATED.items() if name != "amqp_filter_set_bug"},
    quorum=QuorumChoices(invalid_limit_is_none=False, returns_activate=False),
    absent_queue_types=("undefined",),
    crashes_on_ages=True,
    stream_filter_size_refusal="Invalid value for  x-stream-filter-size-bytes",
    single_active_get_refusal="quorum",
    refuses_binding_replies=False,
    replies_are_routed=False,
    replies_count_tags=False,
    refuses_bogus_replies=False,
    returns_late_replies=True,
    commit_to_deleted="partial",
    largest_content=0,
    longest_pattern=0,
    channel_limit_text=(
        "number of channels opened for user '{node}' has reached the maximum allowed user limit of ({limit})"
    ),
    names_default_queue_type=False,
    definitions_repeat_queue_type=True,
    limits_are_pairs=True,
    new_secret_is_checked=False,
    # Other settings of a node change the order, here and in 4.3.6; see the choice.
    mechanisms=("AMQPLAIN", "ANONYMOUS", "PLAIN"),
)

# No node of this series was at hand. The tagged source of 4.1.8 has the code of 4.0.5 for all choices in
# which 4.0 and 4.2 differ, except for these, for which it has that of 4.2.9. Its metadata store is Mnesia by
# default, as in 4.0.
RABBITMQ_4_1 = replace(
    RABBITMQ_4_0,
    name="rabbitmq-4.1",
    version="4.1.8",
    **argument_choices("rabbitmq-4.1"),
    smallest_frame_max=8192,  # since 4.1.0 (release notes)
    deprecated_features=_DEPRECATED,
    quorum=replace(RABBITMQ_4_0.quorum, returns_activate=True),  # since 4.1.2
    names_default_queue_type=True,
    definitions_repeat_queue_type=False,
)

RABBITMQ_3_13 = replace(
    RABBITMQ_4_0,
    name="rabbitmq-3.13",
    version="3.13.7",
    **argument_choices("rabbitmq-3.13"),
    header_for_others=_HEADER_0_9_1,
    exchange_types=_without(_EXCHANGES, "x-local-random"),
    deprecated_features={
        "transient_nonexcl_queues": "permitted",
        "global_qos": "permitted",
        "classic_queue_mirroring": "permitted",
        "ram_node_type": "permitted",
        "management_metrics_collection": "permitted",
    },
    stream_consumer_terms=("'{}'", "stream queues {}"),
    publish_checks=("topic-permission", "reply-to", "user-id", "expiration", "copies", "deaths"),
    takes_deaths_from_clients=True,
    quorum=QuorumChoices(
        delivery_limit=None,
        negative_limit_is_none=False,
        invalid_limit_is_none=False,
        carries_failures=False,
        priorities="none",
        single_active_by_priority=False,
        losses_by_age=False,
    ),
    largest_message=128 * _MIB,
    mechanisms=("PLAIN", "AMQPLAIN"),
    policy_decides_expiry=("quorum",),
    negative_delivery_limit=False,
    remembers_queue_type="by default",
    definitions_name_format=False,
    definitions_repeat_queue_type=False,
)

RABBITMQ_3_10 = replace(
    RABBITMQ_3_13,
    name="rabbitmq-3.10",
    version="3.10.8",
    **argument_choices("rabbitmq-3.10"),
    prints_utf8=False,
    rewrites_headers=False,
    refusals_name_permission=False,
    unknown_exchange_type="command-invalid",
    timestamps_match_in_milliseconds=False,
    numbers_match_by_value=True,
    duplicates_match_in_turn=True,
    matches_last_header=False,
    deprecated_features={},
    crashes_on_locators=True,
    streams_annotate=False,
    streams_refuse_rejects=True,
    quorum=replace(RABBITMQ_3_13.quorum, counts_on_get=True),
    rewrites_expirations=False,
    publish_checks=(
        "topic-permission",
        "reply-to",
        "user-id",
        "expiration",
        "copies",
        "delivery-mode",
        "deaths",
    ),
    keeps_claimed_deaths=True,
    tells_last_death=False,
    sorts_deaths=True,
    commit_to_deleted="by name",
    channel_limit_text=(
        "number of channels opened for user '{user}' has reached the maximum allowed user limit of ({limit})"
    ),
)

RABBITMQ_4_3 = replace(
    RABBITMQ_4_2,
    name="rabbitmq-4.3",
    version="4.3.6",
    **argument_choices("rabbitmq-4.3"),
    takes_cancel_ok=True,
    has_log_exchange=True,
    most_topic_wildcards=2,
    most_uncommitted_publishes=10_000,
    bindings_sorted_by="destination",
    hashes_empty_headers=True,
    deprecated_features={
        **_DEPRECATED,
        "global_qos": "denied",
        "queue_master_locator": "denied",
        "ram_node_type": "removed",
        "amqp_address_v1": "denied",
        "amqp_filter_set_bug": "denied",
    },
    validates_consumer_timeout=True,
    classic_failures=("lost", "rejected", "failed"),
    quorum=QuorumChoices(
        limit_counts="failures",
        failures=("lost", "rejected", "failed"),
        back_without_limit=("released",),
        shows_acquisitions=True,
        priorities="levels",
        counts_properties=True,
        purges_all=True,
        consumers_time_out=True,
    ),
    checks_utf8="strictly",
    compares_ages=True,
    channels_time_out=False,
    mechanisms=("AMQPLAIN", "PLAIN", "ANONYMOUS"),
)

SPEC = replace(
    RABBITMQ_4_2,
    name="spec",
    product="fakeamqp",
    version="0.1.0",
    **argument_choices("spec"),
    header_for_others=_HEADER_0_9_1,
    awaits_whole_header=False,
    explains_malformed_input=True,
    closes_silently_on_bad_frames=True,
    reports_errors_from="open",
    frame_size_tolerance=0,
    sends_oversized_headers=False,
    smallest_frame_max=4096,
    published_field_grammar=True,
    heartbeat_off_channel_zero="frame-error",
    heartbeat_ticks=False,
    send_timeout=0.0,
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
    rewrites_headers=False,
    sorts_headers=False,
    longest_name=127,
    restricts_names=True,
    reserved_queue_redeclarable=True,
    passive_declare_needs_permission=False,
    has_trace_exchange=False,
    transient_exchanges_survive=False,
    default_exchange_bindable=True,
    type_mismatch_ends_connection=True,
    unknown_exchange_type="command-invalid",
    passive_no_wait_is_silent=True,
    exchange_flags_reserved=True,
    deleting_missing_is_an_error=True,
    unbinding_missing_is_an_error=True,
    compares_auto_delete=False,
    equivalence_ignores_unknown_arguments=False,
    timestamps_match_in_milliseconds=False,
    exchange_types=(*_STANDARD_EXCHANGES, "system"),
    invalid_exchange_types=("",),
    deprecated_features={},
    absent_queue_types=(),
    streams_rewrite_properties=False,
    prefetch_is_per_consumer=False,
    shared_limit_holds_no_ack=False,
    shared_limit_counts_all_held=False,
    tags_are_inherited=False,
    matches_last_header=False,
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
    confirms_unroutable_at_once=False,
    commit_to_deleted="ignored",
    commits_gradually=False,
    checks_utf8="no",
    compares_widths=False,
    routes_by_cc_headers=False,
    direct_reply_to=False,
    refuses_binding_replies=False,
    paused_consumers_count=False,
    # In the specifications prefetch limits are always shared, and priority levels are strict.
    quorum=QuorumChoices(refuses_shared_windows=False, priorities="levels"),
    consumer_timeout=0.0,
    channels_time_out=False,
    largest_content=0,
    largest_message=0,
    largest_message_condition="content-too-large",
    new_secret_is_checked=False,
    announces_host=True,
    capabilities=(
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities",
    ),
    refuses_unknown_locales=True,
    connection_limit_condition="resource-error",
    queue_limit_condition="resource-error",
    remembers_queue_type="never",
    names_default_queue_type=False,
    definitions_name_format=False,
    branches=BranchChoices(contradictory_flags="not-allowed", longest_timeout=None),
    most_failed_logins=100,
)

PERSONALITIES = {
    each.name: each
    for each in (
        RABBITMQ_3_10,
        RABBITMQ_3_13,
        RABBITMQ_4_0,
        RABBITMQ_4_1,
        RABBITMQ_4_2,
        RABBITMQ_4_3,
        SPEC,
    )
}

_NUMBER = re.compile(r"(?:rabbitmq)?[- _v]*(\d+(?:\.\d+)*)", re.IGNORECASE)


def personality(name: str | Personality) -> Personality:
    """The personality called `name`; a record is returned as it is.

    Raises:
        UnknownPersonality: there is none; the text names the nearest match.
    """
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
