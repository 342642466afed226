from __future__ import annotations

import pytest

from fakeamqp.model.errors import InternalError
from fakeamqp.model.personality import FEATURES, PERSONALITIES, DeprecatedFeatures, FeatureError


def test_features_of_personalities_are_exactly_the_known_features() -> None:
    known = {name for each in PERSONALITIES.values() for name in each.deprecated_features}
    assert known == set(FEATURES)


def test_deprecated_feature_has_default_of_version() -> None:
    assert DeprecatedFeatures(PERSONALITIES["rabbitmq-4.2"]).permitted("global_qos")
    assert not DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"]).permitted("global_qos")
    assert not DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"]).permitted("ram_node_type")


def test_feature_not_deprecated_in_version_is_permitted() -> None:
    assert DeprecatedFeatures(PERSONALITIES["rabbitmq-3.13"]).permitted("queue_master_locator")
    assert all(DeprecatedFeatures(PERSONALITIES["spec"]).permitted(name) for name in FEATURES)


def test_permitting_or_denying_one_feature_leaves_other_features_unchanged() -> None:
    features = DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"], permit=["global_qos"])
    assert features.permitted("global_qos")
    assert not features.permitted("queue_master_locator")
    features = DeprecatedFeatures(PERSONALITIES["rabbitmq-4.2"], deny=["global_qos"])
    assert not features.permitted("global_qos")
    assert features.permitted("transient_nonexcl_queues")


def test_permit_accepts_single_feature_name_as_text() -> None:
    assert DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"], permit="global_qos").permitted("global_qos")


def test_permitting_or_denying_feature_with_that_default_is_accepted() -> None:
    assert DeprecatedFeatures(PERSONALITIES["rabbitmq-4.2"], permit=["global_qos"]).permitted("global_qos")
    assert not DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"], deny=["ram_node_type"]).permitted(
        "ram_node_type"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"permit": ["gobal_qos"]}, "no deprecated feature 'gobal_qos'; did you mean 'global_qos'?"),
        ({"deny": ["zzz"]}, "no deprecated feature 'zzz'. Known: amqp_address_v1, "),
        (
            {"permit": ["ram_node_type"]},
            "the deprecated feature 'ram_node_type' cannot be permitted: rabbitmq-4.3 has it no more",
        ),
        (
            {"permit": ["global_qos"], "deny": ["global_qos"]},
            "the deprecated feature 'global_qos' is both permitted and denied",
        ),
    ],
)
def test_invalid_feature_setting_is_refused(arguments: dict[str, list[str]], text: str) -> None:
    with pytest.raises(FeatureError) as caught:
        DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"], **arguments)
    assert str(caught.value).startswith(text)


def test_feature_of_another_version_is_refused() -> None:
    with pytest.raises(FeatureError, match=r"no deprecated feature of rabbitmq-3\.13; it has classic_"):
        DeprecatedFeatures(PERSONALITIES["rabbitmq-3.13"], deny=["queue_master_locator"])
    with pytest.raises(FeatureError, match="no deprecated feature of spec, and has none at all"):
        DeprecatedFeatures(PERSONALITIES["spec"], deny=["global_qos"])


def test_requiring_denied_feature_is_refused() -> None:
    DeprecatedFeatures(PERSONALITIES["rabbitmq-4.2"]).require("global_qos")
    with pytest.raises(InternalError):
        DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"]).require("global_qos")
