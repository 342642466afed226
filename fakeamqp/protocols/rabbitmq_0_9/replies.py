"""The reply codes of both protocols: see `framed.replies`."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9.codec import constants as constants_0_9
from fakeamqp.protocols.amqp_0_9_1.codec import constants as constants_0_9_1
from fakeamqp.protocols.framed.replies import Replies

__all__ = ["REPLIES", "REPLY_NAMES"]

REPLY_NAMES = {**constants_0_9.REPLY_NAMES, **constants_0_9_1.REPLY_NAMES}
REPLIES = Replies(REPLY_NAMES, constants_0_9.HARD_ERRORS | constants_0_9_1.HARD_ERRORS)
