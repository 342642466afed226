"""Policies and operator policies: options that an operator gives to queues and exchanges by their names.

`policy` describes one policy, checks its definition, and combines it with an operator policy and arguments;
`book` keeps the policies of a virtual host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.lazy import on_first_use

if TYPE_CHECKING:
    from fakeamqp.model.policies.book import Policies
    from fakeamqp.model.policies.policy import (
        Policy,
        PolicyError,
        effective_definition,
        effective_options,
        read_policy,
    )

__all__ = ["Policies", "Policy", "PolicyError", "effective_definition", "effective_options", "read_policy"]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(
        __name__,
        {
            "fakeamqp.model.policies.book": ("Policies",),
            "fakeamqp.model.policies.policy": (
                "Policy",
                "PolicyError",
                "effective_definition",
                "effective_options",
                "read_policy",
            ),
        },
    )


def __dir__() -> list[str]:
    return sorted(__all__)
