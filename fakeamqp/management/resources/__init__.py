"""The resources of the API: one module for each kind of thing."""

from __future__ import annotations

from fakeamqp.management.resources import (
    bindings,
    connections,
    consumers,
    definitions,
    exchanges,
    features,
    health,
    limits,
    messages,
    overview,
    parameters,
    permissions,
    policies,
    queues,
    users,
    vhosts,
)

__all__ = ["RESOURCES"]

RESOURCES = (
    *overview.RESOURCES,
    *vhosts.RESOURCES,
    *users.RESOURCES,
    *permissions.RESOURCES,
    *limits.RESOURCES,
    *connections.RESOURCES,
    *consumers.RESOURCES,
    *exchanges.RESOURCES,
    *queues.RESOURCES,
    *bindings.RESOURCES,
    *messages.RESOURCES,
    *policies.RESOURCES,
    *parameters.RESOURCES,
    *definitions.RESOURCES,
    *features.RESOURCES,
    *health.RESOURCES,
)
"""Of two paths that fit a request, the first one counts."""
