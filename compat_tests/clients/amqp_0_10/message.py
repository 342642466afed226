"""A message that has come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from fakeamqp.protocols.amqp_0_10.codec import commands as x, structs
from fakeamqp.protocols.amqp_0_10.codec.structs import Struct

__all__ = ["Message"]

S = TypeVar("S", bound=Struct)


@dataclass(frozen=True)
class Message:
    """A transfer to us: `id` is that of the command, `header` its structs, `body` None where it has none."""

    id: int
    transfer: x.MessageTransfer
    header: tuple[Any, ...]
    body: bytes | None

    @property
    def destination(self) -> str:
        """The subscription that it belongs to."""
        return self.transfer.destination or ""

    @property
    def delivery(self) -> structs.DeliveryProperties:
        """Its delivery-properties; empty ones where it has none."""
        return self._find(structs.DeliveryProperties)

    @property
    def properties(self) -> structs.MessageProperties:
        """Its message-properties; empty ones where it has none."""
        return self._find(structs.MessageProperties)

    @property
    def headers(self) -> dict[str, Any]:
        """Its application headers."""
        return dict(self.properties.application_headers or {})

    def _find(self, kind: type[S]) -> S:
        return next((each for each in self.header if isinstance(each, kind)), kind())
