"""The types of the choices as keyword arguments: written by `python -m compat_tests.tools.personalities`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from fakeamqp.model.personality import BranchChoices, Phase, QuorumChoices


class PersonalityChoices(TypedDict, total=False):
    """The choices of a personality that `Personality.with_` takes; `Personality` documents each."""

    name: str
    product: str
    version: str
    header_for_others: bytes
    unspoken_protocols: tuple[str, ...]
    awaits_whole_header: bool
    explains_malformed_input: bool
    closes_silently_on_bad_frames: bool
    reports_errors_from: Literal["tuned", "open"]
    frame_size_tolerance: int
    sends_oversized_headers: bool
    smallest_frame_max: int
    published_field_grammar: bool
    heartbeat_off_channel_zero: str
    heartbeat_ticks: bool
    send_timeout: float
    content_on_channel_zero: str
    content_on_closed_channel: str
    content_class_mismatch: str
    body_overrun: str
    refuses_open_before_close_ok: bool
    channel_above_maximum: str
    channel_max_limits: Literal["count", "number"]
    client_ends_closed_transport: bool
    connection_method_out_of_order: str
    unknown_virtual_host: str
    takes_cancel_ok: bool
    prints_utf8: bool
    rewrites_headers: bool
    sorts_headers: bool
    refusals_name_permission: bool
    longest_name: int
    restricts_names: bool
    reserved_queue_redeclarable: bool
    passive_declare_needs_permission: bool
    has_trace_exchange: bool
    has_log_exchange: bool
    transient_exchanges_survive: bool
    restart_keeps_unbound_exchanges: bool
    default_exchange_bindable: bool
    type_mismatch_ends_connection: bool
    unknown_exchange_type: str
    passive_no_wait_is_silent: bool
    exchange_flags_reserved: bool
    deleting_missing_is_an_error: bool
    unbinding_missing_is_an_error: bool
    compares_auto_delete: bool
    equivalence_ignores_unknown_arguments: bool
    most_topic_wildcards: int
    timestamps_match_in_milliseconds: bool
    numbers_match_by_value: bool
    duplicates_match_in_turn: bool
    exchange_types: tuple[str, ...]
    invalid_exchange_types: tuple[str, ...]
    bindings_sorted_by: Literal["key", "age", "destination"]
    largest_hash_weight: int
    hashes_empty_headers: bool
    deprecated_features: Mapping[str, Phase]
    queue_arguments: Mapping[str, tuple[str, ...]]
    consumer_arguments: Mapping[str, tuple[str, ...]]
    removed_queue_arguments: tuple[str, ...]
    argument_values: Mapping[str, tuple[str | int, ...]]
    validates_consumer_timeout: bool
    crashes_on_locators: bool
    absent_queue_types: tuple[str, ...]
    crashes_on_ages: bool
    stream_filter_size_refusal: str
    streams_rewrite_properties: bool
    streams_annotate: bool
    streams_refuse_rejects: bool
    stream_consumer_terms: tuple[str, str]
    single_active_get_refusal: str
    classic_failures: tuple[str, ...]
    quorum: QuorumChoices
    branches: BranchChoices
    prefetch_is_per_consumer: bool
    refuses_denied_global_qos: bool
    shared_limit_holds_no_ack: bool
    shared_limit_counts_all_held: bool
    tags_are_inherited: bool
    matches_last_header: bool
    honours_prefetch_size: bool
    honours_client_flow: bool
    throttles_with_flow: bool
    honours_no_local: bool
    honours_immediate: bool
    exclusive_consumer_blocks_get: bool
    recovers_to_original_consumer: bool
    rejected_avoids_same_channel: bool
    most_deliveries: int
    queues_have_priorities: bool
    discards_low_priority_first: bool
    dead_letters_deleted: bool
    expiration_is_ttl: bool
    rewrites_expirations: bool
    checks_user_id: bool
    routes_by_cc_headers: bool
    direct_reply_to: bool
    refuses_binding_replies: bool
    replies_are_routed: bool
    replies_count_tags: bool
    publish_checks: tuple[str, ...]
    takes_deaths_from_clients: bool
    keeps_claimed_deaths: bool
    tells_last_death: bool
    sorts_deaths: bool
    paused_consumers_count: bool
    consumer_timeout: float
    channels_time_out: bool
    largest_content: int
    largest_message: int
    largest_message_condition: str
    confirms_unroutable_at_once: bool
    commit_to_deleted: Literal["ignored", "by name", "partial", "fails"]
    commits_gradually: bool
    most_uncommitted_publishes: int
    checks_utf8: Literal["no", "loosely", "strictly"]
    compares_widths: bool
    compares_ages: bool
    refuses_bogus_replies: bool
    returns_late_replies: bool
    policy_keys: tuple[str, ...]
    operator_policy_keys: tuple[str, ...]
    foreign_policy_keys: Mapping[str, tuple[str, ...]]
    longest_pattern: int
    policy_decides_expiry: tuple[str, ...]
    negative_delivery_limit: bool
    connection_limit_condition: str
    queue_limit_condition: str
    channel_limit_text: str
    remembers_queue_type: Literal["never", "by default", "always"]
    names_default_queue_type: bool
    definitions_name_format: bool
    definitions_repeat_queue_type: bool
    limits_are_pairs: bool
    new_secret_is_checked: bool
    announces_host: bool
    capabilities: tuple[str, ...]
    mechanisms: tuple[str, ...]
    refuses_unknown_locales: bool
    channel_max: int
    frame_max: int
    heartbeat: int
    loopback_users: tuple[str, ...]
    most_failed_logins: int
    login_block_time: float
    not_implemented: tuple[str, ...]
    extensions: Mapping[type, object]
