"""The choices of personalities that concern the management API alone."""

from __future__ import annotations

from dataclasses import dataclass

from fakeamqp.model.versions import UNTIL_4_0, Choices, choice

_FLAGS_4_0 = (
    "classic_mirrored_queue_version",
    "classic_queue_type_delivery_support",
    "detailed_queues_endpoint",
    "direct_exchange_routing_v2",
    "drop_unroutable_metric",
    "empty_basic_get_metric",
    "feature_flags_v2",
    "implicit_default_bindings",
    "khepri_db",
    "listener_records_in_ets",
    "maintenance_mode_status",
    "message_containers",
    "message_containers_deaths_v2",
    "quorum_queue",
    "quorum_queue_non_voters",
    "rabbit_exchange_type_local_random",
    "rabbitmq_4.0.0",
    "restart_streams",
    "stream_filtering",
    "stream_queue",
    "stream_sac_coordinator_unblock_group",
    "stream_single_active_consumer",
    "stream_update_config_command",
    "tracking_records_in_ets",
    "user_limits",
    "virtual_host_metadata",
)
_FLAGS_4_3 = (
    *_FLAGS_4_0,
    "rabbitmq_4.1.0",
    "rabbitmq_4.2.0",
    "rabbitmq_4.3.0",
    "tie_binding_to_dest_with_keep_while_cond",
    "topic_binding_projection_v4",
    "topic_binding_projection_v5",
    "track_qq_members_uids",
)


@dataclass(frozen=True, init=False)
class ManagementChoices(Choices):
    """What one version of RabbitMQ does in its management API. The usual values are measured on 4.3.6.

    3.10 and 3.13 were not measured and have those of 4.0.
    """

    hides_virtual_hosts: bool = choice(True, {UNTIL_4_0: False})
    """A virtual host in which the user has no permissions is 404 as if it did not exist, not 401 (measured:
    404 on 4.3.6, 401 on 4.0.5)."""
    crashes_on_bad_values: bool = choice(False, {UNTIL_4_0: True})
    """An unknown queue type or ackmode is an internal error (measured: 500 on 4.0.5, 400 on 4.3.6)."""
    checks_topic_exchanges: bool = choice(True, {UNTIL_4_0: False})
    """Topic permissions need an existing exchange (measured: 400 on 4.3.6, not on 4.0.5)."""
    ignores_bad_filters: bool = choice(True, {UNTIL_4_0: False})
    """A filter that is no regular expression matches nothing (measured on 4.3.6; 400 on 4.0.5)."""
    escapes_policy_problems: bool = choice(False, {UNTIL_4_0: True})
    """What is wrong with a policy is written for HTML, with `&lt;` for "<" (measured on 4.0.5, not on
    4.3.6)."""
    unknown_node: str = choice(
        "Node {} is not a cluster member", {UNTIL_4_0: "Node {} could not be contacted"}
    )
    """The text about a node that is not in the cluster (measured on both)."""
    has_new_checks: bool = choice(True, {UNTIL_4_0: False})
    """The health checks, paths and fields of 4.1 and later (measured: present on 4.3.6, 404 or missing on
    4.0.5)."""
    has_deletion_protection: bool = choice(True, {UNTIL_4_0: False})
    """Virtual hosts can be protected from deletion (measured: 4.3.6, not 4.0.5)."""
    names_protocols: bool = choice(True, {UNTIL_4_0: False})
    """The check of protocol listeners lists protocols (measured on 4.3.6; on 4.0.5 it names the one that was
    asked for)."""
    tells_oauth: bool = choice(False, {UNTIL_4_0: True})
    """`/api/auth` says that OAuth is off (measured on 4.0.5; 404 on 4.3.6)."""
    exports_virtual_hosts: bool = choice(True, {UNTIL_4_0: False})
    """Virtual hosts in definitions have their limits; otherwise they repeat their metadata (measured: 4.3.6,
    4.0.5)."""
    exports_internal_exchanges: bool = choice(False, {UNTIL_4_0: True})
    """Definitions have internal exchanges (measured: 4.0.5, not 4.3.6)."""
    checks_aliveness_with_queue: bool = choice(False, {UNTIL_4_0: True})
    """The check of aliveness leaves a queue behind (measured: 4.0.5, not 4.3.6)."""
    has_internal_queues: bool = choice(True, {UNTIL_4_0: False})
    """Queues say whether they are internal, and their policies also without statistics (measured: 4.3.6, not
    4.0.5)."""
    counts_paged_out: bool = choice(False, {UNTIL_4_0: True})
    """Classic queues have the counts of messages that are paged out, always 0 (measured: 4.0.5, not
    4.3.6)."""
    counts_priorities: bool = choice(True, {UNTIL_4_0: False})
    """Quorum queues count ready messages by priority (measured on 4.3.6); otherwise as normal and high ones
    (measured on 4.0.5)."""
    lists_missing_details: bool = choice(False, {UNTIL_4_0: True})
    """Consumers of AMQP 1.0 have a list in place of the channel's details (measured: 4.0.5, not 4.3.6)."""
    reports_crypto: bool = choice(True, {UNTIL_4_0: False})
    """Overview and nodes name the library of cryptography (measured: 4.3.6, not 4.0.5)."""
    details_feature_flags: bool = choice(True, {UNTIL_4_0: False})
    """Feature flags name their callbacks and levels (measured: 4.3.6, not 4.0.5)."""
    feature_flags: tuple[str, ...] = choice(_FLAGS_4_3, {UNTIL_4_0: _FLAGS_4_0})
    """The names of the feature flags (measured)."""
