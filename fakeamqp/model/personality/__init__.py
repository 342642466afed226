"""Personalities: the behaviour of a RabbitMQ version or of the specifications, as named choices."""

from fakeamqp.model.personality.branches import BranchChoices
from fakeamqp.model.personality.choices import Personality, Phase
from fakeamqp.model.personality.features import FEATURES, DeprecatedFeatures, Feature, FeatureError
from fakeamqp.model.personality.quorum import QuorumChoices
from fakeamqp.model.personality.records import (
    PERSONALITIES,
    RABBITMQ_3_10,
    RABBITMQ_3_13,
    RABBITMQ_4_0,
    RABBITMQ_4_1,
    RABBITMQ_4_2,
    RABBITMQ_4_3,
    SPEC,
    UnknownPersonality,
    personality,
)

__all__ = [
    "FEATURES",
    "PERSONALITIES",
    "RABBITMQ_3_10",
    "RABBITMQ_3_13",
    "RABBITMQ_4_0",
    "RABBITMQ_4_1",
    "RABBITMQ_4_2",
    "RABBITMQ_4_3",
    "SPEC",
    "BranchChoices",
    "DeprecatedFeatures",
    "Feature",
    "FeatureError",
    "Personality",
    "Phase",
    "QuorumChoices",
    "UnknownPersonality",
    "personality",
]
