"""Deprecated features: features that a RabbitMQ version still permits, denies by default, or has removed.

A personality's `deprecated_features` are those it knows, with their default states. Each can be permitted or
denied by name, as with RabbitMQ's `deprecated_features.permit.NAME`; a removed feature cannot be permitted.
Only three of them affect AMQP 0-9-1; the others can only be named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from fakeamqp.errors import FakeAMQPError, nearest
from fakeamqp.model.errors import InternalError
from fakeamqp.model.versions import ONLY_3_13, ONLY_4_0, SINCE_3_13, SINCE_4_0, SINCE_4_3, SPEC, Versions

if TYPE_CHECKING:
    from fakeamqp.model.personality.choices import Personality

Feature: TypeAlias = Literal[
    "transient_nonexcl_queues",
    "global_qos",
    "queue_master_locator",
    "classic_queue_mirroring",
    "ram_node_type",
    "management_metrics_collection",
    "amqp_address_v1",
    "amqp_filter_set_bug",
]

Phase: TypeAlias = Literal["permitted", "denied", "removed"]
"""The default state of a deprecated feature. A removed feature cannot be permitted."""

_ALL = SINCE_3_13 - SPEC
_SINCE_4_0 = SINCE_4_0 - SPEC

_ROWS: Mapping[Feature, tuple[str, Mapping[Versions, Phase]]] = {
    "transient_nonexcl_queues": ("queues that are neither durable nor exclusive", {_ALL: "permitted"}),
    "global_qos": (
        "basic.qos with global set: one prefetch limit for all consumers of a channel",
        {SINCE_4_3: "denied", _ALL: "permitted"},
    ),
    "queue_master_locator": (
        "the argument x-queue-master-locator of classic queues",
        {SINCE_4_3: "denied", _SINCE_4_0: "permitted"},
    ),
    "classic_queue_mirroring": (
        "policies that mirror classic queues; without effect on a single node",
        {ONLY_3_13: "permitted", _SINCE_4_0: "removed"},
    ),
    "ram_node_type": (
        "cluster nodes without disk; not felt by clients",
        {SINCE_4_3: "removed", _ALL: "permitted"},
    ),
    "management_metrics_collection": (
        "metrics of the management plugin; not felt by clients",
        {_ALL: "permitted"},
    ),
    "amqp_address_v1": (
        "addresses of version 1 in AMQP 1.0",
        {SINCE_4_3: "denied", _SINCE_4_0: "permitted"},
    ),
    "amqp_filter_set_bug": (
        "filters of AMQP 1.0 that are not described",
        {SINCE_4_3: "denied", _SINCE_4_0 - ONLY_4_0: "permitted"},
    ),
}
"""What each feature is, and its default state in the personalities that know it: the first that fits."""

FEATURES: Mapping[Feature, str] = {name: meaning for name, (meaning, _) in _ROWS.items()}
"""Every deprecated feature that some personality knows, and its meaning."""


def deprecated_features(personality: str) -> dict[str, Phase]:
    """The deprecated features that the personality of this name knows, and their default states."""
    return {
        name: next(phase for versions, phase in phases.items() if personality in versions)
        for name, (_, phases) in _ROWS.items()
        if any(personality in versions for versions in phases)
    }


# RabbitMQ's texts, up to the point where every one is cut to the 255 bytes of a reply text.
_DENIED_BY_DEFAULT = (
    "Feature `{0}` is deprecated.\n"
    "By default, this feature is not permitted anymore.\n"
    "The feature will be removed from a future major RabbitMQ version, regardless of the configuration; "
    "actual version to be determined.\n"
    "To continue using this feature when it is not permitted by default, set the following parameter"
)
_DENIED_BY_CONFIGURATION = (
    "Feature `{0}` is deprecated.\n"
    "Its use is not permitted per the configuration (overriding the default, which is permitted):\n"
    '    "deprecated_features.permit.{0} = false"\n'
    "Its use will not be permitted by default in a future minor RabbitMQ version and the feature will be "
    "removed from a future major RabbitMQ version"
)


class FeatureError(FakeAMQPError):
    """A deprecated feature cannot be permitted or denied: its name is unknown, or it was removed."""

    __module__ = "fakeamqp.errors"


class DeprecatedFeatures:
    """Which deprecated features one broker permits.

    `permit` and `deny` are names of features to permit or deny, whatever the personality's default.
    FeatureError is raised if the personality does not know one, one is in both, or one to be permitted has
    been removed.
    """

    def __init__(
        self, personality: Personality, permit: Iterable[str] = (), deny: Iterable[str] = ()
    ) -> None:
        self._phases = personality.deprecated_features
        permitted, denied = _names(permit), _names(deny)
        for name in (*permitted, *denied):
            self._check(name, personality.name)
        for name in permitted:
            if name in denied:
                raise FeatureError(f"the deprecated feature {name!r} is both permitted and denied")
            if personality.deprecated_features[name] == "removed":
                raise FeatureError(
                    f"the deprecated feature {name!r} cannot be permitted: {personality.name} has it no more"
                )
        self._permitted = {
            name: name in permitted or (phase == "permitted" and name not in denied)
            for name, phase in self._phases.items()
        }

    def _check(self, name: str, personality: str) -> None:
        if name in self._phases:
            return
        if name in FEATURES:
            others = (
                f"; it has {', '.join(sorted(self._phases))}" if self._phases else ", and has none at all"
            )
            raise FeatureError(f"{name!r} is no deprecated feature of {personality}{others}")
        near = nearest(name, FEATURES)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise FeatureError(f"no deprecated feature {name!r}{hint} Known: {', '.join(sorted(FEATURES))}")

    def permitted(self, name: Feature) -> bool:
        """Whether a feature may be used. A feature that is not deprecated in the personality may."""
        return self._permitted.get(name, True)

    def require(self, name: Feature) -> None:
        """InternalError, with RabbitMQ's text, for a feature that is denied. It closes the connection."""
        if not self.permitted(name):
            denied = self._phases[name] == "denied"
            raise InternalError((_DENIED_BY_DEFAULT if denied else _DENIED_BY_CONFIGURATION).format(name))


def _names(given: Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
