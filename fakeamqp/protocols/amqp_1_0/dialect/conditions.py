"""The conditions of errors, and those that stand for reply codes of 0-9-1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_COMMON: Final = (
    *("internal-error", "not-found", "unauthorized-access", "decode-error", "resource-limit-exceeded"),
    *("not-allowed", "invalid-field", "not-implemented", "resource-locked", "precondition-failed"),
    *("resource-deleted", "illegal-state", "frame-size-too-small"),
)
_SCOPED: Final = {
    "connection": ("forced", "framing-error", "redirect"),
    "session": ("window-violation", "errant-link", "handle-in-use", "unattached-handle"),
    "link": ("detach-forced", "transfer-limit-exceeded", "message-size-exceeded", "redirect", "stolen"),
}
CONDITIONS: Final = frozenset(
    (
        *(f"amqp:{name}" for name in _COMMON),
        *(f"amqp:{scope}:{name}" for scope, names in _SCOPED.items() for name in names),
    )
)
"""Those of the standard, part 2.8.14 to 2.8.18."""

CONDITION_OF_CODE: Final[Mapping[int, str]] = {
    **{311: "amqp:link:message-size-exceeded", 320: "amqp:connection:forced", 402: "amqp:invalid-field"},
    **{403: "amqp:unauthorized-access", 404: "amqp:not-found", 405: "amqp:resource-locked"},
    **{406: "amqp:precondition-failed", 501: "amqp:connection:framing-error", 502: "amqp:decode-error"},
    **{503: "amqp:not-allowed", 504: "amqp:illegal-state", 506: "amqp:resource-limit-exceeded"},
    **{530: "amqp:not-allowed", 540: "amqp:not-implemented", 541: "amqp:internal-error"},
}
"""Any other code stands for an internal error."""
