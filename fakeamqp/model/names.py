"""Names: how long they may be, and those that the broker generates.

Generated names are unique within a broker, and the same for the same seed.
"""

from __future__ import annotations

import base64
import random

LONGEST_NAME = 255
"""Bytes of a name or a routing key: all protocols send them as short strings."""

NODE = "fakeamqp@localhost"
"""The name of the broker as RabbitMQ's node and cluster."""


def octets_of(name: str) -> int:
    """The bytes of a name in UTF-8; a surrogate, which stands for a byte that is no UTF-8, is one."""
    return len(name.encode("utf-8", "replace"))


class NameGenerator:
    """Draws 16 bytes per name from a seeded source and writes them in URL-safe base64, as RabbitMQ does."""

    def __init__(self, seed: int | str | None) -> None:
        self._random = random.Random(seed)

    def token(self) -> str:
        """Twenty-two characters that were not returned before."""
        return base64.urlsafe_b64encode(self._random.randbytes(16)).rstrip(b"=").decode()

    def queue(self) -> str:
        """A name for a queue declared without one (queue.declare/queue-default-name)."""
        return f"amq.gen-{self.token()}"

    def consumer_tag(self) -> str:
        """A tag for a consumer started without one (basic.consume/empty-tag-generated)."""
        return f"amq.ctag-{self.token()}"
