"""Feature flags, all of which are enabled, and deprecated features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.management.access import Role
from fakeamqp.management.errors import bad_request
from fakeamqp.management.resource import NO_CONTENT, Resource

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.state import BrokerState

_PHASES = {"permitted": "permitted_by_default", "denied": "denied_by_default", "removed": "removed"}


def _flags(call: ApiCall) -> object:
    more = {"require_level": "hard", "experiment_level": "supported", "callbacks": []}
    return [
        {
            "name": name,
            "desc": "",
            "doc_url": "",
            "state": "enabled",
            "stability": "required",
            "provided_by": "rabbit",
            **(more if call.choices.details_feature_flags else {}),
        }
        for name in call.choices.feature_flags
    ]


def _enable(call: ApiCall) -> object:
    if call.names["name"] not in call.choices.feature_flags:
        raise bad_request("unsupported")
    return NO_CONTENT


def _deprecated(call: ApiCall) -> object:
    return call.management.read(lambda state: _views(call, state))


def _views(call: ApiCall, state: BrokerState) -> list[dict[str, Any]]:
    rows = []
    for name, phase in state.personality.deprecated_features.items():
        row = {
            "name": name,
            "desc": "",
            "deprecation_phase": _PHASES[phase],
            "doc_url": "",
            "provided_by": "rabbit",
        }
        if call.choices.details_feature_flags:
            permitted = phase != "removed" and state.features.permitted(name)  # type: ignore[arg-type]
            row["state"] = "permitted" if permitted else "denied"
        rows.append(row)
    return rows


def _used(call: ApiCall) -> object:
    def question(state: BrokerState) -> list[dict[str, Any]]:
        transient = any(
            not queue.durable and queue.exclusive_owner is None
            for host in state.virtual_hosts.values()
            for queue in host.queues.values()
        )
        rows = _views(call, state) if transient else []
        return [
            {key: value for key, value in row.items() if key != "state"}
            for row in rows
            if row["name"] == "transient_nonexcl_queues"
        ]

    return call.management.read(question)


RESOURCES = (
    Resource("feature-flags", get=_flags),
    Resource("feature-flags/{name}/enable", put=_enable, role=Role.ADMINISTRATOR),
    Resource("deprecated-features", get=_deprecated),
    Resource("deprecated-features/used", get=_used),
)
