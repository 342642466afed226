"""Sender-selected distribution: further routing keys in the headers CC and BCC (RabbitMQ: documented).

A message is routed by the keys of both. Consumers see CC; BCC is removed before the message is enqueued.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fakeamqp.model.equivalence import type_name
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.message import Message

__all__ = ["Copies", "carbon_copies", "without_blind_copies"]


class Copies(NamedTuple):
    """Additional routing keys of a message: `shown` from CC, `hidden` from BCC."""

    shown: tuple[str, ...]
    hidden: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """All additional routing keys."""
        return self.shown + self.hidden


def carbon_copies(headers: Mapping[str, Any]) -> Copies:
    """The additional keys in `headers`; items that are not text are ignored.

    Raises:
        PreconditionFailed: one of the two headers is not an array.
    """
    return Copies(_keys(headers, "CC"), _keys(headers, "BCC"))


def _keys(headers: Mapping[str, Any], name: str) -> tuple[str, ...]:
    if name not in headers:
        return ()
    value = headers[name]
    if not isinstance(value, (list, tuple)):
        raise PreconditionFailed(
            f'invalid message: {{unacceptable_type_in_header,"{name}",{type_name(value)}}}'
        )
    return tuple(key for key in value if isinstance(key, str))


def without_blind_copies(message: Message) -> Message:
    """The message without the header BCC."""
    if message.copies is None or "BCC" not in message.headers:
        return message
    return message.with_properties(message.properties.with_headers({}, ("BCC",)))
