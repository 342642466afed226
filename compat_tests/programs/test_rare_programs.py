"""Programs that random ones come to too seldom: most have shown an error once."""

from __future__ import annotations

import pytest

from compat_tests.programs.check import run_program
from compat_tests.programs.program import (
    Ack,
    Advance,
    Bind,
    Cancel,
    CloseChannel,
    Consume,
    Declare,
    DeclareExchange,
    Delete,
    Get,
    Nack,
    Program,
    Publish,
    Purge,
    Recover,
    Reject,
)

TO_B = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "b"}
TO_C = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "c"}
TO_D = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "d"}
TO_A = TO_ITSELF = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "a"}

PROGRAMS: dict[str, Program] = {
    "who was full is last in line": [
        Declare("a", {"x-message-ttl": 0, **TO_ITSELF}),
        Consume("a", "x", 1),
        Publish("a"),
        Publish("a"),
        Consume("a", "y", 1),
        Reject(),
    ],
    "the next active consumer is who came next": [
        Declare("a", {"x-single-active-consumer": True}),
        *(Consume("a", tag, prefetch=1) for tag in "xyz"),
        Publish("a"),
        Publish("a"),
        Cancel("x"),
    ],
    "what a channel held goes before the rest to the next active consumer": [
        Declare("a", {"x-single-active-consumer": True}),
        Consume("a", "x", 1),
        Consume("a", "y", 1, channel=2),
        Publish("a"),
        Publish("a"),
        CloseChannel(1),
    ],
    "dead letters follow what displaced them": [
        DeclareExchange("fan"),
        Declare("a", {"x-max-length": 0, **TO_B}),
        Declare("b"),
        Bind("a", "fan"),
        Bind("b", "fan"),
        Publish("", "fan"),
        Publish("", "fan"),
    ],
    "dead letters follow it to every queue": [
        DeclareExchange("fan"),
        Declare("a", {"x-max-length": 0, **TO_B}),
        Declare("b"),
        Declare("c", {"x-queue-type": "quorum", "x-message-ttl": 125}),
        *(Bind(queue, "fan") for queue in "acb"),
        Publish("", "fan"),
    ],
    "all credit is there before the first of many dead letters": [
        Declare("a", TO_ITSELF),
        Consume("a", "x", 1),
        *(Publish("a") for _ in range(3)),
        Get("a"),
        Consume("a", "y", 1),
        Nack(-1, multiple=True, requeue=False),
    ],
    "what is got is dealt with before what consumers hold": [
        Declare("a", TO_B),
        Declare("b"),
        Consume("a", "y", 1),
        Publish("a"),
        Consume("a", "x", 1),
        Publish("a"),
        Publish("a"),
        Get("a"),
        Nack(-1, multiple=True, requeue=False),
    ],
    "one consumer's messages come back after the other's": [
        Declare("a", {"x-max-length": 1}),
        Consume("a", "x", 1),
        Publish("a"),
        Publish("a"),
        Get("a"),
        Recover(),
    ],
    "what a cancelled consumer held is credit for the next one with its tag": [
        Declare("a"),
        *(Publish("a") for _ in range(4)),
        Consume("a", "x", 1),
        Cancel("x"),
        Consume("a", "x", 1),
        Recover(),
        Ack(),
        Nack(-1, multiple=True),
    ],
    "it is for one on the same channel": [
        Declare("a"),
        *(Publish("a") for _ in range(3)),
        Consume("a", "x", 1),
        Cancel("x"),
        Consume("a", "x", 1, channel=2),
        Ack(),
    ],
    "what expired behind a message that is got is not counted": [
        Declare("a"),
        Publish("a"),
        Publish("a", expiration=250),
        Advance(0.5),
        Get("a"),
    ],
    "a queue that has gone has no dead letters": [
        Declare("a", TO_B),
        Declare("b"),
        Publish("a"),
        Get("a"),
        Delete("a"),
        Reject(),
    ],
    "bytes are counted anew after a purge": [
        Declare("a", {"x-max-length-bytes": 4}),
        Publish("a"),
        Publish("a"),
        Purge("a"),
        Publish("a"),
        Publish("a"),
    ],
    "consumers hear by tag that their queue has gone": [
        Declare("a"),
        Consume("a", "y"),
        Consume("a", "x"),
        Delete("a"),
    ],
    "what expired in a queue that is too long goes before dead letters come back": [
        Declare("a", {"x-max-length": 2, **TO_D}),
        Declare("d", {"x-max-length": 3, **TO_A}),
        *(Publish("a") for _ in range(2)),
        Consume("a", "x", 1),
        *(Reject() for _ in range(2)),
        *(Publish("a") for _ in range(3)),
        Publish("a", expiration=0),
        Publish("a"),
    ],
    "time is whole after steps of a millisecond": [
        Declare("a", TO_ITSELF),
        Declare("b", {"x-queue-type": "quorum", "x-message-ttl": 0, **TO_C}),
        Declare("c", {"x-queue-type": "quorum", "x-message-ttl": 0}),
        Publish("a"),
        Publish("b"),
        Get("a"),
        Advance(1),
        Reject(),
    ],
    "a message in circles that nobody rejects is dropped": [
        Declare("a", {"x-message-ttl": 125, **TO_B}),
        Declare("b", {"x-message-ttl": 250, **TO_ITSELF}),
        Publish("a"),
        Advance(5),
    ],
    "a message in circles that somebody rejects is not": [
        Declare("a", {"x-message-ttl": 125, **TO_B}),
        Declare("b", TO_ITSELF),
        Publish("a"),
        Advance(1),
        Get("b"),
        Reject(),
        Advance(1),
        Get("b"),
        Ack(),
    ],
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("personality", ["rabbitmq-4.0", "rabbitmq-4.2"])
def test_rare_queue_program_matches_reference(program: Program, personality: str) -> None:
    assert run_program(program, personality)
