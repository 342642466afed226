"""The reply codes of 0-9-1: see `framed.replies`."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9_1.codec.constants import HARD_ERRORS, REPLY_NAMES
from fakeamqp.protocols.framed.replies import Replies

__all__ = ["REPLIES"]

REPLIES = Replies(REPLY_NAMES, HARD_ERRORS)
