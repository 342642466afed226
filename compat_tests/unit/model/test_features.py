from __future__ import annotations

import pytest

from fakeamqp.model.errors import InternalError
from fakeamqp.model.personality import FEATURES, PERSONALITIES, DeprecatedFeatures, FeatureError


def test_personalities_know_features_that_there_are() -> None:
    known = {name for each in PERSONALITIES.values() for name in each.deprecated_features}
    assert known == set(FEATURES)


def test_what_is_so_by_default() -> None:
    assert DeprecatedFeatures(PERSONALITIES["rabbitmq-4.2"]).permitted("global_qos")
    assert not DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"]).permitted("global_qos")
    assert not DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"]).permitted("ram_node_type")


def test_what_is_not_deprecated_is_permitted() -> None:
    assert DeprecatedFeatures(PERSONALITIES["rabbitmq-3.13"]).permitted("queue_master_locator")
    assert all(DeprecatedFeatures(PERSONALITIES["spec"]).permitted(name) for name in FEATURES)


def test_one_feature_is_permitted_or_denied() -> None:
    features = DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"], permit=["global_qos"])
    assert features.permitted("global_qos")
    assert not features.permitted("queue_master_locator")
    features = DeprecatedFeatures(PERSONALITIES["rabbitmq-4.2"], deny=["global_qos"])
    assert not features.permitted("global_qos")
    assert features.permitted("transient_nonexcl_queues")


def test_a_lone_name_will_do() -> None:
    assert DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"], permit="global_qos").permitted("global_qos")


def test_what_is_so_anyway_may_be_said() -> None:
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
def test_what_cannot_be_said(arguments: dict[str, list[str]], text: str) -> None:
    with pytest.raises(FeatureError) as caught:
        DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"], **arguments)
    assert str(caught.value).startswith(text)


def test_features_of_other_versions() -> None:
    with pytest.raises(FeatureError, match=r"no deprecated feature of rabbitmq-3\.13; it has classic_"):
        DeprecatedFeatures(PERSONALITIES["rabbitmq-3.13"], deny=["queue_master_locator"])
    with pytest.raises(FeatureError, match="no deprecated feature of spec, and has none at all"):
        DeprecatedFeatures(PERSONALITIES["spec"], deny=["global_qos"])


def test_what_is_denied_is_refused() -> None:
    DeprecatedFeatures(PERSONALITIES["rabbitmq-4.2"]).require("global_qos")
    with pytest.raises(InternalError):
        DeprecatedFeatures(PERSONALITIES["rabbitmq-4.3"]).require("global_qos")
