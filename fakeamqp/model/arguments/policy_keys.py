"""All policy keys, one row each: those of arguments, and those without one."""

from __future__ import annotations

from typing import Final

from fakeamqp.model.arguments import policy_values as values
from fakeamqp.model.arguments.exchange_arguments import EXCHANGE_ARGUMENTS
from fakeamqp.model.arguments.mirroring import MIRRORING_KEYS
from fakeamqp.model.arguments.queue_arguments import QUEUE_ARGUMENTS
from fakeamqp.model.arguments.rows import PolicyKey
from fakeamqp.model.arguments.versions import SINCE_3_13

__all__ = ["POLICY_KEYS", "key_of"]

_WITHOUT_ARGUMENT: dict[str, PolicyKey] = {
    "target-group-size": PolicyKey(
        values.positive("is not a valid qq target count value"),
        versions=SINCE_3_13,
        operator=SINCE_3_13,
        operator_merge=max,
        foreign={"classic": SINCE_3_13, "stream": SINCE_3_13},
    ),
    **MIRRORING_KEYS,
}

_ARGUMENTS = (*QUEUE_ARGUMENTS, *EXCHANGE_ARGUMENTS)

POLICY_KEYS: Final[dict[str, PolicyKey]] = {
    row.key: row.policy for row in _ARGUMENTS if row.policy is not None
} | _WITHOUT_ARGUMENT


def key_of(option: str) -> str:
    """The policy key that sets an option.

    Raises:
        KeyError: no argument sets the option.
    """
    return {row.option: row.key for row in _ARGUMENTS if row.option}[option]
