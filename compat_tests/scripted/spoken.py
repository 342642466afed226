"""What the raw client needs of 0-9. Without that package 0-9-1 is tested alone."""

from __future__ import annotations

from collections.abc import Mapping

from fakeamqp.dialects import protocol_names
from fakeamqp.model.personality import Personality
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["METHODS_0_9", "checks_tickets"]

METHODS_0_9: Mapping[int, type[Method]] = {}
"""By index: the methods of 0-9."""

if "0-9" in protocol_names():
    from fakeamqp.protocols.amqp_0_9.choices import Amqp09Choices
    from fakeamqp.protocols.amqp_0_9.codec import METHODS as METHODS_0_9


def checks_tickets(personality: Personality) -> bool:
    """Whether connections of 0-9 have to show access tickets."""
    return personality.extension(Amqp09Choices).checks_tickets
