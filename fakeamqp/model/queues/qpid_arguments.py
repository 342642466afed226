"""The arguments of queue.declare that Apache's brokers know (AMQP 0-10).

Source: the documentation of Apache's C++ broker, and its clients' own tests. Numbers may come as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fakeamqp.model.errors import InvalidArgument

__all__ = ["QpidOptions", "are_asked_for", "qpid_options"]

_MOST_LEVELS = 10

_MAX_COUNT = "qpid.max_count"
_MAX_SIZE = "qpid.max_size"
_POLICY = "qpid.policy_type"
_LEVELS = ("x-qpid-priorities", "qpid.priorities")
_FAIRSHARE = ("x-qpid-fairshare", "qpid.fairshare")
_LAST_VALUE_KEY = "qpid.last_value_queue_key"
_GROUP_KEY = "qpid.group_header_key"
_SHARED_GROUP = "qpid.shared_msg_group"
_SEQUENCE_KEY = "qpid.queue_msg_sequence"
_DELAY = "qpid.auto_delete_timeout"
_NO_LOCAL = "no-local"

_NAMES = frozenset(
    {
        _MAX_COUNT,
        _MAX_SIZE,
        _POLICY,
        *_LEVELS,
        _LAST_VALUE_KEY,
        _GROUP_KEY,
        _SEQUENCE_KEY,
        _DELAY,
        _NO_LOCAL,
    }
)

_POLICIES: dict[object, Literal["reject", "ring"]] = {
    "reject": "reject",
    "ring": "ring",
    "ring_strict": "ring",
}


@dataclass(frozen=True)
class QpidOptions:
    """Counts in messages, sizes in bytes, times in seconds; None means not asked for.

    `levels` is the number of priority levels, `shares` how many messages in a row each level may deliver,
    from the lowest level upwards, 0 for any number. The three keys are names of headers: of messages with
    the same `last_value_key` the queue keeps the latest; messages with the same `group_key` have one consumer
    at a time; the broker writes the message's number to `sequence_key`.
    """

    max_count: int | None = None
    max_size: int | None = None
    policy: Literal["reject", "ring"] = "reject"
    levels: int | None = None
    shares: tuple[int, ...] = field(default=())
    last_value_key: str | None = None
    group_key: str | None = None
    sequence_key: str | None = None
    auto_delete_delay: int | None = None
    no_local: bool = False


def are_asked_for(arguments: Mapping[str, Any]) -> bool:
    """Whether the arguments contain any of these."""
    return not _NAMES.isdisjoint(arguments)


def qpid_options(arguments: Mapping[str, Any]) -> QpidOptions:
    """Read the arguments of queue.declare.

    Raises:
        InvalidArgument: one has an illegal value.
    """
    levels = _either(arguments, _LEVELS)
    return QpidOptions(
        max_count=_number(arguments, _MAX_COUNT) or None,
        max_size=_number(arguments, _MAX_SIZE) or None,
        policy=_policy(arguments),
        levels=None if levels is None else min(max(levels, 1), _MOST_LEVELS),
        shares=() if levels is None else _shares(arguments, min(max(levels, 1), _MOST_LEVELS)),
        last_value_key=_text(arguments, _LAST_VALUE_KEY),
        group_key=_text(arguments, _GROUP_KEY) if _truth(arguments, _SHARED_GROUP) else None,
        sequence_key=_text(arguments, _SEQUENCE_KEY),
        auto_delete_delay=_number(arguments, _DELAY) or None,
        no_local=_truth(arguments, _NO_LOCAL),
    )


def _number(arguments: Mapping[str, Any], name: str) -> int | None:
    """An integer from 0 upwards, or a text that spells one."""
    value = arguments.get(name)
    if value is None:
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if type(value) is not int or value < 0:
        raise InvalidArgument(f"argument '{name}' is not an integer from 0 upwards: {value!r}")
    return value


def _either(arguments: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """A number under any of several names."""
    return next((_number(arguments, name) for name in names if name in arguments), None)


def _shares(arguments: Mapping[str, Any], levels: int) -> tuple[int, ...]:
    """The share of each level: its own, or the common one."""
    common = _either(arguments, _FAIRSHARE) or 0
    own = (_either(arguments, tuple(f"{name}-{each}" for name in _FAIRSHARE)) for each in range(levels))
    shares = tuple(common if share is None else share for share in own)
    return shares if any(shares) else ()


def _policy(arguments: Mapping[str, Any]) -> Literal["reject", "ring"]:
    value = arguments.get(_POLICY, "reject")
    if value not in _POLICIES:
        raise InvalidArgument(
            f"argument '{_POLICY}' is {value!r}, not one of {', '.join(map(str, _POLICIES))}"
        )
    return _POLICIES[value]


def _text(arguments: Mapping[str, Any], name: str) -> str | None:
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidArgument(f"argument '{name}' is not a string: {value!r}")
    return value or None


def _truth(arguments: Mapping[str, Any], name: str) -> bool:
    """A boolean, a number, or the word for one of them."""
    value = arguments.get(name, False)
    return value.lower() not in ("", "0", "false", "no") if isinstance(value, str) else bool(value)
