from __future__ import annotations

from typing import Any

import pytest

from fakeamqp.model.arguments.queue_arguments import QueueOptions, queue_options
from fakeamqp.model.arguments.values import LONGEST_TTL
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.personality import PERSONALITIES


def options(**arguments: Any) -> QueueOptions:
    """Options of a queue; names without their x- and with underscores."""
    named = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    return queue_options("classic", "q", "/", named, PERSONALITIES["rabbitmq-4.2"])


def refusal(**arguments: Any) -> str:
    with pytest.raises(PreconditionFailed) as caught:
        options(**arguments)
    return caught.value.text


def test_queue_without_known_arguments_has_default_options() -> None:
    assert options() == QueueOptions()
    assert options(colour="red") == QueueOptions()


def test_millisecond_arguments_become_options_in_seconds() -> None:
    assert options(message_ttl=1500).message_ttl == 1.5
    assert options(expires=1).expires == 0.001
    assert options(message_ttl=0).message_ttl == 0.0
    assert options(message_ttl=LONGEST_TTL).message_ttl == LONGEST_TTL / 1000


def test_all_classic_queue_arguments_can_be_combined() -> None:
    assert options(
        message_ttl=1000,
        expires=2000,
        max_length=3,
        max_length_bytes=4,
        max_priority=5,
        overflow="reject-publish-dlx",
        dead_letter_exchange="",
        dead_letter_routing_key="",
        single_active_consumer=True,
        queue_type="classic",
        queue_mode="lazy",
        queue_version=2,
    ) == QueueOptions(
        message_ttl=1.0,
        expires=2.0,
        max_length=3,
        max_length_bytes=4,
        max_priority=5,
        overflow="reject-publish-dlx",
        dead_letter_exchange="",
        dead_letter_routing_key="",
        single_active_consumer=True,
    )


@pytest.mark.parametrize("name", ["message_ttl", "expires", "max_length", "max_length_bytes", "max_priority"])
@pytest.mark.parametrize("value", [-1, 1.0, "1", True, None, b"1", [1], {}])
def test_negative_or_non_integer_number_argument_is_refused(name: str, value: Any) -> None:
    assert f"invalid arg 'x-{name.replace('_', '-')}' for queue 'q' in vhost '/': " in refusal(
        **{name: value}
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"message_ttl": LONGEST_TTL + 1}, "value_too_large"),
        ({"expires": LONGEST_TTL + 1}, "value_too_large"),
        ({"expires": 0}, "value_zero"),
        ({"max_priority": 256}, "max_value_exceeded"),
        ({"overflow": "spill"}, "invalid_overflow"),
        ({"dead_letter_routing_key": "k"}, "routing_key_but_no_dlx_defined"),
    ],
    ids=repr,
)
def test_argument_out_of_range_is_refused_with_reason(arguments: dict[str, Any], reason: str) -> None:
    assert reason in refusal(**arguments)


def test_argument_of_another_queue_type_is_refused() -> None:
    assert refusal(max_age="1D") == (
        "invalid arg 'x-max-age' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"
    )
