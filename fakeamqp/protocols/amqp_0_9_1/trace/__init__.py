"""The trace's adapter for 0-9-1."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_9_1.codec.framing import FRAMING
from fakeamqp.protocols.amqp_0_9_1.codec.methods import METHODS
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import PUBLISHED, RABBITMQ
from fakeamqp.protocols.amqp_0_9_1.trace.frames import FrameText091
from fakeamqp.protocols.amqp_0_9_1.trace.reader import Reader091
from fakeamqp.protocols.amqp_0_9_1.trace.vocabulary import TraceVocabulary

__all__ = ["FRAME_TEXT", "READER"]

FRAME_TEXT = FrameText091(
    TraceVocabulary(
        methods=METHODS,
        properties={BasicProperties.CLASS_ID: BasicProperties},
        grammars=(RABBITMQ, PUBLISHED),
        secret_fields=frozenset(("response", "challenge", "new_secret")),
        fields_with_urls=frozenset(("client_properties",)),
    )
)
READER = Reader091(FRAME_TEXT, FRAMING)
