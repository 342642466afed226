"""The reply codes of 0-9: see `amqp_0_9_x.replies`. There is none for an unexpected frame.

Sources: reply-code/no-unexpected-frame, content/incomplete.
"""

from __future__ import annotations

from fakeamqp.dialects.amqp_0_9_x.replies import Replies
from fakeamqp.wire.amqp_0_9.constants import HARD_ERRORS, REPLY_NAMES

__all__ = ["REPLIES"]

REPLIES = Replies(REPLY_NAMES, HARD_ERRORS, {"unexpected-frame": "frame-error"})
