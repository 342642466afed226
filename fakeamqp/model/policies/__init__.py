"""Policies and operator policies: options that an operator gives to queues and exchanges by their names.

`keys` checks definitions, `policy` describes one policy and its matches, `merging` combines a policy, an
operator policy and arguments, and `book` keeps the policies of a virtual host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.lazy import on_first_use

if TYPE_CHECKING:
    from fakeamqp.model.policies.book import Policies
    from fakeamqp.model.policies.merging import effective_definition, effective_options
    from fakeamqp.model.policies.policy import Policy, PolicyError, read_policy

__all__ = ["Policies", "Policy", "PolicyError", "effective_definition", "effective_options", "read_policy"]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(
        __name__,
        {
            "fakeamqp.model.policies.book": ("Policies",),
            "fakeamqp.model.policies.merging": ("effective_definition", "effective_options"),
            "fakeamqp.model.policies.policy": ("Policy", "PolicyError", "read_policy"),
        },
    )


def __dir__() -> list[str]:
    return sorted(__all__)
