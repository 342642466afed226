"""The reply codes of 0-9-1: see `amqp_0_9_x.replies`."""

from __future__ import annotations

from fakeamqp.dialects.amqp_0_9_x.replies import Replies
from fakeamqp.wire.amqp_0_9_1.constants import HARD_ERRORS, REPLY_NAMES

__all__ = ["REPLIES"]

REPLIES = Replies(REPLY_NAMES, HARD_ERRORS)
