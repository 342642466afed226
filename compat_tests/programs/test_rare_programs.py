"""Programs that random ones come to too seldom: most have shown an error once."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.script import *
from compat_tests.programs.check import run_program
from compat_tests.programs.program import numbered

TO_B, TO_C, TO_D, TO_A = (
    {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": f"@{name}"} for name in "bcda"
)
TO_ITSELF = TO_A
FAN = exchange("@fan", "fanout")
A, B, C, D = (f"@{name}" for name in "abcd")
PUBLISH = publish(A)
GET = get(A, no_ack=0)


def one_at_a_time(*tags: str, **how: Any) -> list[Call]:
    """Consumers of @a, each with a prefetch limit of 1."""
    return [call("basic.qos", prefetch_count=1, **how), *(consume(A, tag, **how) for tag in tags)]


def quorum(name: str, **arguments: Any) -> Call:
    return queue_with(name, x_queue_type="quorum", **arguments).with_(durable=1)


PROGRAMS: dict[str, list[Call | Pause]] = {
    "full consumer is last in turn": [
        queue_with(A, x_message_ttl=0, **TO_ITSELF),
        *one_at_a_time("x"),
        PUBLISH,
        PUBLISH,
        *one_at_a_time("y"),
        reject(1),
    ],
    "oldest waiting consumer becomes the active one": [
        queue_with(A, x_single_active_consumer=True),
        *one_at_a_time(*"xyz"),
        PUBLISH,
        PUBLISH,
        call("basic.cancel", consumer_tag="x"),
    ],
    "unsettled messages of a closed channel are first for the next active consumer": [
        queue_with(A, x_single_active_consumer=True),
        open_channel(2),
        open_channel(3),
        *one_at_a_time("x", ch=2),
        *one_at_a_time("y", ch=3),
        PUBLISH,
        PUBLISH,
        call("channel.close", ch=2),
    ],
    "dead letters follow the messages that displaced them": [
        FAN,
        queue_with(A, x_max_length=0, **TO_B),
        queue(B),
        bind(A, "@fan"),
        bind(B, "@fan"),
        publish("", exchange="@fan"),
        publish("", exchange="@fan"),
    ],
    "dead letters follow a fanned out message to every queue": [
        FAN,
        queue_with(A, x_max_length=0, **TO_B),
        queue(B),
        quorum(C, x_message_ttl=125),
        *(bind(name, "@fan") for name in (A, C, B)),
        publish("", exchange="@fan"),
    ],
    "all credit is back before the first of many dead letters": [
        queue_with(A, **TO_ITSELF),
        *one_at_a_time("x"),
        *[PUBLISH] * 3,
        GET,
        *one_at_a_time("y"),
        nack(3, multiple=1),
    ],
    "got messages are dead-lettered before those of consumers": [
        queue_with(A, **TO_B),
        queue(B),
        *one_at_a_time("y"),
        PUBLISH,
        *one_at_a_time("x"),
        PUBLISH,
        PUBLISH,
        GET,
        nack(3, multiple=1),
    ],
    "messages of one consumer return after those of the other": [
        queue_with(A, x_max_length=1),
        *one_at_a_time("x"),
        PUBLISH,
        PUBLISH,
        GET,
        RECOVER,
    ],
    "unsettled message of a cancelled consumer is credit for the next with its tag": [
        queue(A),
        *[PUBLISH] * 4,
        *one_at_a_time("x"),
        call("basic.cancel", consumer_tag="x"),
        *one_at_a_time("x"),
        RECOVER,
        ack(3),
        nack(5, multiple=1, requeue=1),
    ],
    "unsettled message of a cancelled consumer is credit only on its channel": [
        queue(A),
        *[PUBLISH] * 3,
        open_channel(2),
        *one_at_a_time("x"),
        call("basic.cancel", consumer_tag="x"),
        *one_at_a_time("x", ch=2),
        ack(1),
    ],
    "get does not count messages that expired behind its own": [
        queue(A),
        PUBLISH,
        publish(A, props={"expiration": "250"}),
        pause(0.5),
        GET,
    ],
    "reject after the deletion of the queue makes no dead letter": [
        queue_with(A, **TO_B),
        queue(B),
        PUBLISH,
        GET,
        call("queue.delete", queue=A),
        reject(1),
    ],
    "bytes are counted anew after a purge": [
        queue_with(A, x_max_length_bytes=4),
        PUBLISH,
        PUBLISH,
        call("queue.purge", queue=A),
        PUBLISH,
        PUBLISH,
    ],
    "consumers of a deleted queue are cancelled by tag": [
        queue(A),
        consume(A, "y"),
        consume(A, "x"),
        call("queue.delete", queue=A),
    ],
    "expired messages of a full queue go before dead letters return": [
        queue_with(A, x_max_length=2, **TO_D),
        queue_with(D, x_max_length=3, **TO_A),
        PUBLISH,
        PUBLISH,
        *one_at_a_time("x"),
        reject(1),
        reject(2),
        *[PUBLISH] * 3,
        publish(A, props={"expiration": "0"}),
        PUBLISH,
    ],
    "time is whole after steps of a millisecond": [
        queue_with(A, **TO_ITSELF),
        quorum(B, x_message_ttl=0, **TO_C),
        quorum(C, x_message_ttl=0),
        PUBLISH,
        publish(B),
        GET,
        pause(1),
        reject(1),
    ],
    "message in a cycle without rejections is dropped": [
        queue_with(A, x_message_ttl=125, **TO_B),
        queue_with(B, x_message_ttl=250, **TO_ITSELF),
        PUBLISH,
        pause(5),
    ],
    "message in a cycle with a rejection is kept": [
        queue_with(A, x_message_ttl=125, **TO_B),
        queue_with(B, **TO_ITSELF),
        PUBLISH,
        pause(1),
        get(B, no_ack=0),
        reject(1),
        pause(1),
        get(B, no_ack=0),
        ack(2),
    ],
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("personality", ["rabbitmq-4.0", "rabbitmq-4.2"])
def test_rare_queue_program_matches_reference(program: list[Call | Pause], personality: str) -> None:
    assert run_program(numbered(*program), personality)
