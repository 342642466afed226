"""The choices of personalities that concern the management API alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakeamqp.protocols.base.choices import choices_of

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality

__all__ = ["ManagementChoices", "choices_for"]

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


@dataclass(frozen=True)
class ManagementChoices:
    """What one version of RabbitMQ does in its management API. The defaults are measured on 4.3.6.

    Args:
        hides_virtual_hosts: a virtual host in which the user has no permissions is 404 as if it did not
            exist, not 401 (measured: 404 on 4.3.6, 401 on 4.0.5).
        crashes_on_bad_values: an unknown queue type or ackmode is an internal error (measured: 500 on 4.0.5,
            400 on 4.3.6).
        checks_topic_exchanges: topic permissions need an existing exchange (measured: 400 on 4.3.6, not on
            4.0.5).
        ignores_bad_filters: a filter that is no regular expression matches nothing (measured on 4.3.6; 400 on
            4.0.5).
        escapes_policy_problems: what is wrong with a policy is written for HTML, with `&lt;` for "<"
            (measured on 4.0.5, not on 4.3.6).
        unknown_node: the text about a node that is not in the cluster (measured on both).
        has_new_checks: the health checks, paths and fields of 4.1 and later (measured: present on 4.3.6, 404
            or missing on 4.0.5).
        has_deletion_protection: virtual hosts can be protected from deletion (measured: 4.3.6, not 4.0.5).
        names_protocols: the check of protocol listeners lists protocols (measured on 4.3.6; on 4.0.5 it names
            the one that was asked for).
        tells_oauth: `/api/auth` says that OAuth is off (measured on 4.0.5; 404 on 4.3.6).
        exports_virtual_hosts: virtual hosts in definitions have their limits; otherwise they repeat their
            metadata (measured: 4.3.6, 4.0.5).
        exports_internal_exchanges: definitions have internal exchanges (measured: 4.0.5, not 4.3.6).
        checks_aliveness_with_queue: the check of aliveness leaves a queue behind (measured: 4.0.5, not
            4.3.6).
        has_internal_queues: queues say whether they are internal, and their policies also without statistics
            (measured: 4.3.6, not 4.0.5).
        counts_paged_out: classic queues have the counts of messages that are paged out, always 0 (measured:
            4.0.5, not 4.3.6).
        counts_priorities: quorum queues count ready messages by priority (measured on 4.3.6); otherwise as
            normal and high ones (measured on 4.0.5).
        reports_crypto: overview and nodes name the library of cryptography (measured: 4.3.6, not 4.0.5).
        details_feature_flags: feature flags name their callbacks and levels (measured: 4.3.6, not 4.0.5).
        feature_flags: the names of the feature flags (measured).
    """

    hides_virtual_hosts: bool = True
    crashes_on_bad_values: bool = False
    checks_topic_exchanges: bool = True
    ignores_bad_filters: bool = True
    escapes_policy_problems: bool = False
    unknown_node: str = "Node {} is not a cluster member"
    has_new_checks: bool = True
    has_deletion_protection: bool = True
    names_protocols: bool = True
    tells_oauth: bool = False
    exports_virtual_hosts: bool = True
    exports_internal_exchanges: bool = False
    checks_aliveness_with_queue: bool = False
    has_internal_queues: bool = True
    counts_paged_out: bool = False
    counts_priorities: bool = True
    reports_crypto: bool = True
    details_feature_flags: bool = True
    feature_flags: tuple[str, ...] = _FLAGS_4_3


_USUAL = ManagementChoices()
_4_0 = ManagementChoices(
    hides_virtual_hosts=False,
    crashes_on_bad_values=True,
    checks_topic_exchanges=False,
    ignores_bad_filters=False,
    escapes_policy_problems=True,
    unknown_node="Node {} could not be contacted",
    has_new_checks=False,
    has_deletion_protection=False,
    names_protocols=False,
    tells_oauth=True,
    exports_virtual_hosts=False,
    exports_internal_exchanges=True,
    checks_aliveness_with_queue=True,
    has_internal_queues=False,
    counts_paged_out=True,
    counts_priorities=False,
    reports_crypto=False,
    details_feature_flags=False,
    feature_flags=_FLAGS_4_0,
)
_RECORDS = {
    "rabbitmq-3.10": _4_0,
    "rabbitmq-3.13": _4_0,
    "rabbitmq-4.0": _4_0,
}


def choices_for(personality: Personality) -> ManagementChoices:
    """The choices of a personality.

    "rabbitmq-3.10" and "rabbitmq-3.13" were not measured and have those of 4.0; all others have those of 4.3.
    """
    return choices_of(personality, _USUAL, _RECORDS)
