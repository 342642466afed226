"""The reply codes of 0-9: see `amqp_0_9_1.replies`. 0-9 has no code for an unexpected frame.

Sources: reply-code/no-unexpected-frame, content/incomplete.
"""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec.constants import HARD_ERRORS, REPLY_NAMES
from fakeamqp.protocols.amqp_0_9_1.codec import constants as constants_0_9_1
from fakeamqp.protocols.amqp_0_9_1.replies import Replies

__all__ = ["RABBITMQ_REPLIES", "REPLIES"]

REPLIES = Replies(REPLY_NAMES, HARD_ERRORS, {"unexpected-frame": "frame-error"})
RABBITMQ_REPLIES = Replies(
    {**REPLY_NAMES, **constants_0_9_1.REPLY_NAMES}, HARD_ERRORS | constants_0_9_1.HARD_ERRORS
)
"""The codes of both protocols."""
