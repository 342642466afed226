"""Personalities: how they differ, their names, their features, and a row for each choice."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, replace

import pytest

from compat_tests.tools.personalities import choices_table, keywords
from fakeamqp.errors import BrokerError
from fakeamqp.model.errors import InternalError
from fakeamqp.model.personality import (
    FEATURES,
    PERSONALITIES,
    DeprecatedFeatures,
    FeatureError,
    Personality,
    UnknownPersonality,
    personality,
)
from fakeamqp.model.personality.variants import UnknownChoice, field_texts
from fakeamqp.model.versions import NAMES, SINCE_4_3, choice, made

OLD, NEW = PERSONALITIES["rabbitmq-3.13"], PERSONALITIES["rabbitmq-4.3"]
PAIRS = list(itertools.permutations(PERSONALITIES.values(), 2))


def ids(personality: Personality) -> str:
    return personality.name


def difference(name: str, first: Personality = OLD, second: Personality = NEW):
    (found,) = [each for each in first.differences(second) if each.name == name]
    return found


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=ids)
def test_adopting_all_differences_makes_second_personality(first: Personality, second: Personality) -> None:
    names = [each.name for each in first.differences(second)]
    adopted = first.adopting(second, names)
    assert replace(adopted, product=second.product, version=second.version) == second
    assert first.adopting(second, ()) == first


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=ids)
def test_each_difference_can_be_adopted_alone(first: Personality, second: Personality) -> None:
    for each in first.differences(second):
        adopted = first.adopting(second, [each.name])
        assert [one.name for one in first.differences(adopted)] == [each.name]


def test_difference_has_documentation_and_source_of_choice() -> None:
    found = difference("largest_hash_weight")
    assert (found.value, found.other) == (0, 10_000)
    assert found.text == "The largest binding key of x-consistent-hash; 0 = any number."
    assert found.source == "RabbitMQ: 10000 since 4.2"


def test_difference_names_specification_rule_as_source() -> None:
    found = difference("largest_message")
    assert found.text == "Bytes of body; 0 = no limit."
    assert found.source == "rule reply-code/content-too-large"


def test_difference_may_have_rule_as_source_and_no_text() -> None:
    found = difference("deleting_missing_is_an_error", OLD, PERSONALITIES["spec"])
    assert found.text == ""
    assert found.source == "rule exchange.delete/exchange-exists, queue.delete/queue-must-exist"


def test_choice_of_nested_record_is_reported_and_can_be_adopted() -> None:
    found = difference("quorum.delivery_limit")
    assert (found.value, found.other) == (None, 20)
    assert found.text.startswith("The default delivery limit")
    assert OLD.adopting(NEW, ["quorum.delivery_limit"]).quorum == replace(OLD.quorum, delivery_limit=20)


def test_key_of_mapping_is_reported_as_choice_and_can_be_adopted() -> None:
    found = difference("deprecated_features.global_qos")
    assert (found.value, found.other) == ("permitted", "denied")
    assert found.text.startswith("Deprecated feature: basic.qos with global set")
    assert found.source == "RabbitMQ's setting deprecated_features.permit.global_qos"
    adopted = OLD.adopting(NEW, ["deprecated_features.global_qos"])
    assert adopted.deprecated_features == {**OLD.deprecated_features, "global_qos": "denied"}


def test_key_missing_in_one_personality_can_be_adopted_in_both_directions() -> None:
    name = "deprecated_features.queue_master_locator"
    assert difference(name).value is None
    assert difference(name, NEW, OLD).other is None
    feature = name.partition(".")[2]
    assert feature in OLD.adopting(NEW, [name]).deprecated_features
    assert feature not in NEW.adopting(OLD, [name]).deprecated_features


def test_unknown_choice_is_refused_with_nearest_match() -> None:
    with pytest.raises(UnknownChoice, match=r"in a choice 'quorum\.limit'; did you mean 'quorum"):
        OLD.adopting(NEW, ["quorum.limit"])


def test_every_differing_choice_has_text_or_source_except_announced_settings() -> None:
    spec, usual = PERSONALITIES["spec"], PERSONALITIES["rabbitmq-4.2"]
    announced = {"channel_max", "frame_max", "heartbeat", "mechanisms", "extensions"}
    silent = {
        each.name
        for first, second in ((OLD, NEW), (usual, spec))
        for each in first.differences(second)
        if not each.text and not each.source
    }
    assert silent <= announced < {field.name for field in fields(Personality)}


def test_text_of_choice_is_docstring_below_it() -> None:
    texts = field_texts(Example)
    assert texts == {"first": "What the first is for.", "third": "What the third is for."}


class Example:
    """Choices."""

    first: int
    """What the first
    is for."""
    second: int
    third: int
    """What the third is for."""


# --- what is said to a test that names a personality that does not exist -------------------------------


KNOWN = " Known: rabbitmq-3.10, rabbitmq-3.13, rabbitmq-4.0, rabbitmq-4.1, rabbitmq-4.2, rabbitmq-4.3, spec"


def test_each_personality_is_found_by_its_name() -> None:
    assert [personality(name).name for name in PERSONALITIES] == list(PERSONALITIES)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("rabbitmq-3.12", "; nearest to RabbitMQ 3.12 are 'rabbitmq-3.10' and 'rabbitmq-3.13'."),
        ("rabbitmq-3.9", "; nearest to RabbitMQ 3.9 is 'rabbitmq-3.10'."),
        ("rabbitmq-4.10", "; nearest to RabbitMQ 4.10 is 'rabbitmq-4.3'."),
        ("rabbitmq-4.1.8", "; did you mean 'rabbitmq-4.1'?"),
        ("4.2", "; did you mean 'rabbitmq-4.2'?"),
        ("v4.0", "; did you mean 'rabbitmq-4.0'?"),
        ("RabbitMQ 4", "; did you mean 'rabbitmq-4.3'?"),
        ("rabitmq-4.2", "; did you mean 'rabbitmq-4.2'?"),
        ("specs", "; did you mean 'spec'?"),
        ("x", "."),
        ("", "."),
    ],
)
def test_unknown_personality_name_is_refused_with_nearest_names(name: str, hint: str) -> None:
    with pytest.raises(UnknownPersonality) as problem:
        personality(name)
    assert str(problem.value) == f"no personality {name!r}{hint}{KNOWN}"


# --- features ------------------------------------------------------------------------------------------


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


# --- one row is enough for a choice ----------------------------------------------------------------------


@dataclass(frozen=True, init=False)
class Longer(Personality):
    """All choices, and one more."""

    folds_letters: str = choice("never", {SINCE_4_3: "at night"})
    """queue/folding: when letters are folded (RabbitMQ: measured on 4.3.6)."""


PLAIN, FOLDING = made(Longer, "rabbitmq-4.2"), made(Longer, "rabbitmq-4.3")


def test_choice_row_gives_each_personality_its_value() -> None:
    values = {name: made(Longer, name).folds_letters for name in NAMES}
    assert values == {**dict.fromkeys(NAMES, "never"), "rabbitmq-4.3": "at night"}
    assert PLAIN.longest_name == PERSONALITIES["rabbitmq-4.2"].longest_name


def test_choice_of_row_can_be_set_by_name() -> None:
    made_otherwise = PLAIN.with_(folds_letters="at night")  # type: ignore[call-arg]
    assert made_otherwise.folds_letters == "at night"
    assert [each.name for each in PLAIN.differences(made_otherwise)] == ["folds_letters"]


def test_misspelled_choice_of_row_is_refused_with_nearest_match() -> None:
    with pytest.raises(UnknownChoice, match="no choice 'fold_letters'; did you mean 'folds_letters'"):
        PLAIN.with_(fold_letters="never")  # type: ignore[call-arg]


def test_misspelled_value_of_choice_is_refused_with_nearest_match() -> None:
    with pytest.raises(BrokerError, match="folds_letters: there is no 'at nigth'; did you mean 'at night'"):
        PLAIN.with_(folds_letters="at nigth")  # type: ignore[call-arg]


def test_value_of_wrong_type_for_choice_is_refused() -> None:
    with pytest.raises(BrokerError, match="folds_letters must be a text, not 3"):
        PLAIN.with_(folds_letters=3)  # type: ignore[call-arg]


def test_choice_row_is_reported_as_difference_with_text_and_source() -> None:
    (found,) = [each for each in PLAIN.differences(FOLDING) if each.name == "folds_letters"]
    assert (found.value, found.other) == ("never", "at night")
    assert found.text == "When letters are folded."
    assert found.source == "RabbitMQ: measured on 4.3.6"
    assert PLAIN.adopting(FOLDING, ["folds_letters"]).folds_letters == "at night"


def test_choice_row_appears_as_line_of_choices_table() -> None:
    table = choices_table([PLAIN, FOLDING])
    assert "| When letters are folded (`queue/folding`) | `folds_letters` | never | at night |" in table


def test_choice_row_appears_as_typed_keyword_argument() -> None:
    assert keywords("", Longer) == keywords("") + "    folds_letters: str\n"
