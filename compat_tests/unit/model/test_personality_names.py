"""What is said to a test that names a personality that does not exist."""

from __future__ import annotations

import pytest

from fakeamqp.model.personality import PERSONALITIES, UnknownPersonality, personality

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
