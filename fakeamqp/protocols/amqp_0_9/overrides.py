"""What 0-9 makes of a personality: where its text is plain, it counts, whoever's behaviour the broker shows.

RabbitMQ answers the header of 0-9 and then does what it does in 0-9-1. Clients that are written for 0-9
expect what they were promised: the choices here are no longer anybody's.
"""

from __future__ import annotations

from dataclasses import replace

from fakeamqp.model.personality import Personality

__all__ = ["with_overrides"]


def with_overrides(personality: Personality) -> Personality:
    """The personality as connections of 0-9 see it."""
    return replace(
        personality,
        smallest_frame_max=4096,
        content_class_mismatch="frame-error",
        content_on_channel_zero="channel-error",
        heartbeat_off_channel_zero="frame-error",
        prefetch_is_per_consumer=False,
        honours_client_flow=True,
        direct_reply_to=False,
        capabilities=(),
    )
