"""The frame types of 0-9 and their names.

The encoding of frames is the same as in 0-9-1, see `fakeamqp.protocols.amqp_0_9_1.codec.frames`. 0-8 has the
same types without requests and responses.
"""

from __future__ import annotations

from typing import Final

from fakeamqp.protocols.amqp_0_9.codec import constants as c

__all__ = ["FRAME_NAMES", "FRAME_TYPES", "FRAME_TYPES_0_8", "OUT_OF_BAND"]

#: frame type -> name
FRAME_NAMES: Final[dict[int, str]] = {
    c.FRAME_METHOD: "method",
    c.FRAME_HEADER: "header",
    c.FRAME_BODY: "body",
    c.FRAME_OOB_METHOD: "oob-method",
    c.FRAME_OOB_HEADER: "oob-header",
    c.FRAME_OOB_BODY: "oob-body",
    c.FRAME_TRACE: "trace",
    c.FRAME_HEARTBEAT: "heartbeat",
    c.FRAME_REQUEST: "request",
    c.FRAME_RESPONSE: "response",
}
#: all types in the documents
FRAME_TYPES: Final = frozenset(FRAME_NAMES)
#: the types of 0-8
FRAME_TYPES_0_8: Final = FRAME_TYPES - {c.FRAME_REQUEST, c.FRAME_RESPONSE}
#: the types whose payload is transported outside the connection (0-9/oob/format)
OUT_OF_BAND: Final = frozenset((c.FRAME_OOB_METHOD, c.FRAME_OOB_HEADER, c.FRAME_OOB_BODY))
