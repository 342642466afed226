"""Names that the broker generates: unique within a broker, and the same for the same seed."""

from __future__ import annotations

import base64
import random

__all__ = ["NODE", "NameGenerator"]

NODE = "fakeamqp@localhost"
"""The name of the broker as RabbitMQ's node and cluster."""


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
