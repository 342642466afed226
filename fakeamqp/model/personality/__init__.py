"""Whose behaviour the broker shows: the choices there are, and what each personality chooses."""

from fakeamqp.model.personality.branches import BranchChoices
from fakeamqp.model.personality.choices import Personality, Phase
from fakeamqp.model.personality.features import FEATURES, DeprecatedFeatures, Feature, FeatureError
from fakeamqp.model.personality.quorum import QuorumChoices
from fakeamqp.model.personality.records import (
    PERSONALITIES,
    RABBITMQ_3_13,
    RABBITMQ_4_0,
    RABBITMQ_4_2,
    RABBITMQ_4_3,
    SPEC,
    UnknownPersonality,
    personality,
)

__all__ = [
    "FEATURES",
    "PERSONALITIES",
    "RABBITMQ_3_13",
    "RABBITMQ_4_0",
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
