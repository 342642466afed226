"""How a client gets to a broker."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from fakeamqp import Broker


@dataclass(frozen=True)
class Reach:
    """What a client is told about a broker."""

    broker: Broker
    host: str
    port: int
    context: ssl.SSLContext | None = None
    """Trusts the broker, where it speaks TLS."""
    ca_file: str | None = None

    @property
    def url(self) -> str:
        scheme = "amqp" if self.context is None else "amqps"
        return f"{scheme}://guest:guest@{self.host}:{self.port}/%2F"
