"""How two personalities differ, and a personality with some choices of another one."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace

import pytest

from fakeamqp.model.personality import PERSONALITIES, Personality
from fakeamqp.model.personality.variants import UnknownChoice, field_texts

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
