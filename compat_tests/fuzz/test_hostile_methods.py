"""Well-formed frames with strange contents, and programs that would exhaust a careless broker."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz import hostile
from compat_tests.fuzz.amqp_0_9 import hostile as hostile_0_9
from compat_tests.fuzz.amqp_1_0 import hostile as hostile_1_0
from compat_tests.fuzz.profile import examples
from compat_tests.fuzz.subjects import PERSONALITIES, SUBJECTS_0_9, SUBJECTS_1_0, Subject
from compat_tests.fuzz.test_mutated_streams import check_stream
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

MANY_EXCHANGES = 1000
MANY_QUEUES = 300
"""More links in a chain than there is room for on the stack, at three calls for each, or four."""


@pytest.mark.parametrize("subject", (*SUBJECTS_0_9, *SUBJECTS_1_0), ids=str)
def test_strange_programs(subject: Subject) -> None:
    strange: Any = {"0-9": hostile_0_9, "1-0": hostile_1_0}.get(subject.protocol, hostile)
    start = strange.prepared(strict=subject.strict)
    fates: Counter[str] = Counter()

    @examples(800 * subject.share)
    @given(program=strange.programs(), wait=st.sampled_from([0, 0.02, 11]))
    def run(program: list[bytes], wait: float) -> None:
        fates[check_stream(subject, start + b"".join(program), (), True, wait)] += 1

    run()
    assert fates["open"], "the strange things are refused before they mean anything"


@pytest.fixture
def client() -> Client:
    return Server("rabbitmq-4.3").client()


def test_a_long_chain_of_auto_delete_exchanges_goes_at_once(client: Client) -> None:
    client.declare("end")
    for number in range(MANY_EXCHANGES):
        exchange = m.ExchangeDeclare(exchange=str(number), type="fanout", auto_delete=True)
        client.call(exchange, m.ExchangeDeclareOk)
        if number:
            bind = m.ExchangeBind(destination=str(number - 1), source=str(number))
            client.call(bind, m.ExchangeBindOk)
        else:
            client.bind("end", "0")
    client.publish(b"through all of them", exchange=str(MANY_EXCHANGES - 1))
    assert client.count("end") == 1
    client.call(m.QueueDelete(queue="end"), m.QueueDeleteOk)
    assert "0" not in client.server.vhost.exchanges
    assert str(MANY_EXCHANGES - 1) not in client.server.vhost.exchanges


@pytest.mark.parametrize("end", ["stored", "circle"])
def test_a_message_dies_in_a_long_chain_of_full_queues(client: Client, end: str) -> None:
    for number in range(MANY_QUEUES):
        following = number + 1 if number + 1 < MANY_QUEUES else 0 if end == "circle" else "end"
        arguments = {
            "x-max-length": 0,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": str(following),
        }
        client.declare(str(number), arguments=arguments)
    client.declare("end")
    client.publish(b"all the way", routing_key="0")
    assert client.count("end") == (end == "stored")
    assert all(not queue.ready for name, queue in client.server.vhost.queues.items() if name != "end")


@pytest.mark.parametrize(
    "headers",
    [
        {"x-death": "text"},
        {"x-death": ["text", None, [], {}]},
        {"x-death": [{"queue": "q", "reason": "rejected", "count": value} for value in hostile.VALUES]},
        {"x-death": [{"queue": value, "reason": value, "count": 1} for value in hostile.VALUES]},
        {"x-death": {"queue": "q"}},
        {"x-first-death-queue": None, "x-last-death-reason": [], "BCC": []},
        {"CC": "q"},
        {"CC": [*hostile.VALUES]},
        {"CC": ["x" * 300, "ü" * 200], "BCC": ["dead" * 100]},
        {"": None, "deep": hostile.VALUES[-1]},
    ],
)
@pytest.mark.parametrize("personality", PERSONALITIES)
def test_message_with_hostile_death_headers_is_refused_or_dead_lettered(
    personality: str, headers: dict[str, object]
) -> None:
    server = Server(personality)
    client = server.client(channels=2)
    octets = BasicProperties(headers=headers).encode()
    server.vhost.queues.declare("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    server.vhost.queues.declare("q", QueueDeclaration(arguments=arguments))
    frames = content_frames(1, 60, octets, b"", 1000)
    client.send_bytes(method_frame(1, m.BasicPublish(routing_key="q").encode()) + b"".join(frames))
    if client.inbox:  # It is refused at the door, by what the documents allow or by what RabbitMQ does.
        assert isinstance(client.take_frame().method, (m.ChannelClose, m.ConnectionClose))
        return
    assert client.get("q") is not None
    client.send(m.BasicReject(delivery_tag=1, requeue=False))
    assert client.get("dead") is not None
    client.send(m.BasicReject(delivery_tag=2, requeue=True))
    assert client.get("dead", channel=2) is not None


@pytest.mark.parametrize("key", ["x" * 256, "x" * 70_000])
def test_a_dead_letter_routing_key_that_fits_no_short_string(client: Client, key: str) -> None:
    client.declare("dead")
    client.bind("dead", "amq.fanout")
    arguments = {"x-dead-letter-exchange": "amq.fanout", "x-dead-letter-routing-key": key}
    client.fails(m.QueueDeclare(queue="q", arguments=arguments), 406)
    client.open_channel()
    client.publish(routing_key="q")
    assert client.count("dead") == 0
    assert "q" not in client.server.vhost.queues


def test_a_pattern_of_many_wildcards_is_no_trap() -> None:
    client = Server("rabbitmq-4.2").client()  # Later ones refuse it.
    client.declare("q")
    client.bind("q", "amq.topic", "#." * 60 + "end")
    client.publish(exchange="amq.topic", routing_key="a." * 120)
    client.publish(exchange="amq.topic", routing_key="a." * 100 + "end")
    assert client.count("q") == 1
