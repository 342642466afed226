"""One row is enough for a choice of a personality, and for an argument of a queue."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

from compat_tests.tools.personalities import choices_table, keywords
from fakeamqp.errors import BrokerError
from fakeamqp.model.personality import PERSONALITIES, Personality
from fakeamqp.model.personality.variants import UnknownChoice
from fakeamqp.model.versions import NAMES, SINCE_4_3, choice, made


@dataclass(frozen=True, init=False)
class Longer(Personality):
    """All choices, and one more."""

    folds_letters: str = choice("never", {SINCE_4_3: "at night"})
    """queue/folding: when letters are folded (RabbitMQ: measured on 4.3.6)."""


OLD, NEW = made(Longer, "rabbitmq-4.2"), made(Longer, "rabbitmq-4.3")


def test_choice_row_gives_each_personality_its_value() -> None:
    values = {name: made(Longer, name).folds_letters for name in NAMES}
    assert values == {**dict.fromkeys(NAMES, "never"), "rabbitmq-4.3": "at night"}
    assert OLD.longest_name == PERSONALITIES["rabbitmq-4.2"].longest_name


def test_choice_of_row_can_be_set_by_name() -> None:
    made_otherwise = OLD.with_(folds_letters="at night")  # type: ignore[call-arg]
    assert made_otherwise.folds_letters == "at night"
    assert [each.name for each in OLD.differences(made_otherwise)] == ["folds_letters"]


def test_misspelled_choice_of_row_is_refused_with_nearest_match() -> None:
    with pytest.raises(UnknownChoice, match="no choice 'fold_letters'; did you mean 'folds_letters'"):
        OLD.with_(fold_letters="never")  # type: ignore[call-arg]


def test_misspelled_value_of_choice_is_refused_with_nearest_match() -> None:
    with pytest.raises(BrokerError, match="folds_letters: there is no 'at nigth'; did you mean 'at night'"):
        OLD.with_(folds_letters="at nigth")  # type: ignore[call-arg]


def test_value_of_wrong_type_for_choice_is_refused() -> None:
    with pytest.raises(BrokerError, match="folds_letters must be a text, not 3"):
        OLD.with_(folds_letters=3)  # type: ignore[call-arg]


def test_choice_row_is_reported_as_difference_with_text_and_source() -> None:
    (found,) = [each for each in OLD.differences(NEW) if each.name == "folds_letters"]
    assert (found.value, found.other) == ("never", "at night")
    assert found.text == "When letters are folded."
    assert found.source == "RabbitMQ: measured on 4.3.6"
    assert OLD.adopting(NEW, ["folds_letters"]).folds_letters == "at night"


def test_choice_row_appears_as_line_of_choices_table() -> None:
    table = choices_table([OLD, NEW])
    assert "| Queue/folding: when letters are folded | `folds_letters` | never | at night |" in table


def test_choice_row_appears_as_typed_keyword_argument() -> None:
    assert keywords("", Longer) == keywords("") + "    folds_letters: str\n"


ARGUMENT = """\
    most_readers: int | None = option(
        "x-most-readers",
        ArgumentReader.positive,
        {"quorum": Taken(SINCE_4_3, position=210)},
        PolicyKey(values.positive("is not a number of readers"), versions=SINCE_4_3, merge=min, foreign={}),
    )
    def __repr__(self)"""

PROGRAM = """
from importlib.machinery import SourceFileLoader

get_data = SourceFileLoader.get_data

def with_row(loader, path):
    data = get_data(loader, path)
    if path.endswith("queue_arguments.py"):
        data = data.replace(b"    def __repr__(self)", ROW.encode(), 1)
        assert b"x-most-readers" in data
    return data

SourceFileLoader.get_data = with_row
path_stats = SourceFileLoader.path_stats

def not_compiled(loader, path):
    if path.endswith("queue_arguments.py"):
        raise OSError
    return path_stats(loader, path)

SourceFileLoader.path_stats = not_compiled

from compat_tests.tools.personalities import choices_table
from fakeamqp import Broker, PERSONALITIES
from fakeamqp.model.arguments.queue_arguments import compared_arguments, queue_options
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.policies import PolicyError

def refusal(kind, arguments):
    try:
        queue_options(kind, "q", "/", arguments, PERSONALITIES["rabbitmq-4.3"])
    except PreconditionFailed as refused:
        return refused.text

print(queue_options("quorum", "q", "/", {"x-most-readers": 2}, PERSONALITIES["rabbitmq-4.3"]).most_readers)
print(queue_options("quorum", "q", "/", {"x-most-readers": 0}, PERSONALITIES["rabbitmq-4.2"]).most_readers)
print(refusal("quorum", {"x-most-readers": 0}))
print(refusal("classic", {"x-most-readers": 2}))
print("x-most-readers" in compared_arguments("quorum", PERSONALITIES["rabbitmq-4.3"]))
print("`x-most-readers` in declarations of quorum queues" in choices_table())

ARGUMENTS = {"x-queue-type": "quorum", "x-most-readers": 5}
QUEUE = {"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": ARGUMENTS}
with Broker(definitions={"queues": [QUEUE]}) as broker:
    broker.set_policy("p", "q", {"most-readers": 3})
    print(broker._state.virtual_hosts["/"].queues["q"].options)
    try:
        broker.set_policy("p", "q", {"most-reader": 3})
    except PolicyError as unknown:
        print(str(unknown).partition("; ")[2])
"""


def test_one_option_row_adds_queue_argument_and_policy_key() -> None:
    program = f"ROW = {ARGUMENT!r}\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "2",
        "None",
        "invalid arg 'x-most-readers' for queue 'q' in vhost '/': {value_zero,0}",
        "invalid arg 'x-most-readers' for queue 'q' in vhost '/' of queue type rabbit_classic_queue",
        "True",
        "True",
        "QueueOptions(most_readers=3)",
        "did you mean 'most-readers'?",
    ]
