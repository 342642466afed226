"""What publishers are told while several resource alarms stand together."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["LONGEST_REASON", "joint_reason"]

LONGEST_REASON = 255
"""Bytes of a reason, which is sent as a short string."""
_LOW = "low on "
_AND = " & "


def joint_reason(reasons: Iterable[str]) -> str | None:
    """The reason for which publishers are blocked while these alarms stand; None while none does.

    It names the resources of all, "low on disk & memory", as RabbitMQ does (measured on 3.10.8, 4.0.5 and
    4.3.6). Where a reason has another form, it is the last one.
    """
    known = list(dict.fromkeys(reasons))
    if not known:
        return None
    if all(reason.startswith(_LOW) for reason in known):
        resources = {resource for reason in known for resource in reason[len(_LOW) :].split(_AND)}
        joint = _LOW + _AND.join(sorted(resources))
        if len(joint.encode()) <= LONGEST_REASON:
            return joint
    return known[-1]
