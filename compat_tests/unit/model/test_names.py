from __future__ import annotations

import re

import pytest

from fakeamqp.model.names import NameGenerator

TOKEN = r"[A-Za-z0-9_-]{22}"


def some(names: NameGenerator) -> list[str]:
    return [names.queue(), names.consumer_tag(), names.token(), names.queue()]


@pytest.mark.parametrize("seed", [0, 1, "a word"])
def test_the_same_seed_gives_the_same_names(seed: int | str) -> None:
    assert some(NameGenerator(seed)) == some(NameGenerator(seed))


def test_different_seeds_and_absent_seed_give_different_names() -> None:
    drawn = [tuple(some(NameGenerator(seed))) for seed in (0, 1, "1", None, None)]
    assert len(set(drawn)) == len(drawn)


def test_generated_names_have_rabbitmq_format() -> None:
    names = NameGenerator(1)
    assert re.fullmatch(f"amq\\.gen-{TOKEN}", names.queue())
    assert re.fullmatch(f"amq\\.ctag-{TOKEN}", names.consumer_tag())
    assert re.fullmatch(TOKEN, names.token())


def test_generated_names_do_not_repeat() -> None:
    names = NameGenerator(1)
    assert len({names.token() for _ in range(10_000)}) == 10_000
