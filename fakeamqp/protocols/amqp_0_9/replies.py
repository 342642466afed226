"""The reply codes of 0-9: see `framed.replies`. 0-9 has no code for an unexpected frame.

Sources: reply-code/no-unexpected-frame, content/incomplete.
"""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.constants import HARD_ERRORS, REPLY_NAMES
from fakeamqp.protocols.framed.replies import Replies

__all__ = ["REPLIES"]

REPLIES = Replies(REPLY_NAMES, HARD_ERRORS, {"unexpected-frame": "frame-error"})
