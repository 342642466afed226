"""What a trace knows of 0-9-1."""

from __future__ import annotations

from fakeamqp.trace.amqp_0_9_x.frames import Words
from fakeamqp.trace.amqp_0_9_x.reader import FamilyReader
from fakeamqp.trace.amqp_0_9_x.vocabulary import Vocabulary
from fakeamqp.wire.amqp_0_9_1.methods import METHODS
from fakeamqp.wire.amqp_0_9_1.properties import BasicProperties
from fakeamqp.wire.amqp_0_9_x.framing import FRAMING
from fakeamqp.wire.amqp_0_9_x.tables import PUBLISHED, RABBITMQ

__all__ = ["READER", "WORDS"]

WORDS = Words(
    Vocabulary(
        methods=METHODS,
        properties={BasicProperties.CLASS_ID: BasicProperties},
        grammars=(RABBITMQ, PUBLISHED),
        secret_fields=frozenset(("response", "challenge", "new_secret")),
        fields_with_urls=frozenset(("client_properties",)),
    )
)
READER = FamilyReader(WORDS, FRAMING)
