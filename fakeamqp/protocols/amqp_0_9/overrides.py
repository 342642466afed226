"""The choices of a personality that 0-9 overrides: the specification of 0-9 is unambiguous about them.

They apply to connections that follow the letter of 0-9, whatever the personality chooses for 0-9-1.
"""

from __future__ import annotations

from dataclasses import replace

from fakeamqp.model.personality import Personality

__all__ = ["with_overrides"]


def with_overrides(personality: Personality) -> Personality:
    """Return the personality with the choices that apply to connections of 0-9."""
    return replace(
        personality,
        explains_malformed_input=True,
        smallest_frame_max=4096,
        content_on_channel_zero="channel-error",
        heartbeat_off_channel_zero="frame-error",
        prefetch_is_per_consumer=False,
        honours_client_flow=True,
        direct_reply_to=False,
        capabilities=(),
    )
