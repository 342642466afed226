"""Personalities: the behaviour of a RabbitMQ version or of the specifications, as named choices."""

from fakeamqp.model.personality.choices import (
    PERSONALITIES,
    BranchChoices,
    Personality,
    QuorumChoices,
    UnknownPersonality,
    personality,
)
from fakeamqp.model.personality.features import FEATURES, DeprecatedFeatures, Feature, FeatureError, Phase

__all__ = [
    "FEATURES",
    "PERSONALITIES",
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
