"""The trace's adapter for 0-9-1."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9_1.codec.framing import FRAMING
from fakeamqp.protocols.amqp_0_9_1.codec.methods import METHODS
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.framed.codec.tables import PUBLISHED, RABBITMQ
from fakeamqp.protocols.framed.trace.frames import FrameText
from fakeamqp.protocols.framed.trace.reader import FamilyReader
from fakeamqp.protocols.framed.trace.vocabulary import Vocabulary

__all__ = ["FRAME_TEXT", "READER"]

FRAME_TEXT = FrameText(
    Vocabulary(
        methods=METHODS,
        properties={BasicProperties.CLASS_ID: BasicProperties},
        grammars=(RABBITMQ, PUBLISHED),
        secret_fields=frozenset(("response", "challenge", "new_secret")),
        fields_with_urls=frozenset(("client_properties",)),
    )
)
READER = FamilyReader(FRAME_TEXT, FRAMING)
