"""Clients of AMQP 1.0 are repeated from a recording, and what is different then is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakeamqp import Broker
from fakeamqp.replay import NotTheSame, replay
from fakeamqp.trace import Trace, load

proton = pytest.importorskip("proton")
utils = pytest.importorskip("proton.utils")

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

DEFINITIONS = {
    "queues": [{"name": name, "vhost": "/", "durable": True} for name in ("q", "other")],
    "exchanges": [],
    "bindings": [],
}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(definitions=DEFINITIONS) as broker:
        yield broker


def recorded(broker: Broker, path: Path) -> Trace:
    """The recording of what has happened once every client has gone, written and read back."""
    broker.wait_for(lambda: not broker.connections)
    broker.wait_until_idle()
    broker.trace.jsonl(path / "trace.jsonl")
    return load(path / "trace.jsonl")


def connect(broker: Broker, **login: Any) -> Any:
    return utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{broker.port}", timeout=10, **login)


def talk(broker: Broker) -> None:
    """Publish, large too, receive with several outcomes, and be refused."""
    connection = connect(broker)
    sender = connection.create_sender("/queues/q", name="out")
    for body in (b"one", b"x" * 100_000, b"three"):
        sender.send(proton.Message(body=body, inferred=True, id=1, properties={"n": 1}))
    receiver = connection.create_receiver("/queues/q", name="in", credit=3)
    for outcome in ("accept", "release", "reject"):
        receiver.receive()
        getattr(receiver, outcome)()
    with pytest.raises(utils.LinkDetached):
        connection.create_sender("/queues/missing", name="gone")
    connection.close()


def test_replay_of_a_proton_client_gives_the_same_answers(broker: Broker, tmp_path: Path) -> None:
    talk(broker)
    outcome = replay(recorded(broker, tmp_path), definitions=DEFINITIONS)
    outcome.expect_same()
    assert outcome.connections[0].replies > 15


def test_replay_on_another_version_translates_its_first_numbers(broker: Broker, tmp_path: Path) -> None:
    """What 4.0 begins with is 2^32 less a few: without translation it ends the session of a flow."""
    talk(broker)
    outcome = replay(recorded(broker, tmp_path), definitions=DEFINITIONS, personality="rabbitmq-4.1")
    text = str(outcome)
    assert not outcome.same
    assert "window-violation" not in text and "next_outgoing_id=4294967292" in text


def test_replay_at_a_url_logs_in_with_its_user(broker: Broker, tmp_path: Path) -> None:
    talk(broker)
    trace = recorded(broker, tmp_path)
    with Broker(users={"bob": "other"}, definitions=DEFINITIONS) as other:
        replay(trace, url=other.url).expect_same()
        assert len(other.published) == 3
        assert not other.admin.failures


def test_replay_repeats_a_refused_login(broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(proton.ProtonException):
        utils.BlockingConnection(f"amqp://guest:wrong@127.0.0.1:{broker.port}", timeout=10)
    talk(broker)
    replay(recorded(broker, tmp_path), definitions=DEFINITIONS).expect_same()


def test_missing_queue_is_a_difference(broker: Broker, tmp_path: Path) -> None:
    talk(broker)
    outcome = replay(recorded(broker, tmp_path))
    answers = r"\+ session 0: attach name='out' handle=0.*\n.*accepted\n.*unattached-handle"
    with pytest.raises(NotTheSame, match=answers):
        outcome.expect_same()


def test_other_outcome_and_other_message_are_differences(broker: Broker, tmp_path: Path) -> None:
    broker.faults.on("transfer", body=b"one").nack().once()
    broker.faults.on("transfer", direction="sent").replace(body=b"changed").once()
    connection = connect(broker)
    sender = connection.create_sender("/queues/q")
    with pytest.raises(utils.SendException):
        sender.send(proton.Message(body=b"one", inferred=True))
    sender.send(proton.Message(body=b"two", inferred=True))
    connection.create_receiver("/queues/q", credit=1).receive()
    connection.close()
    outcome = replay(recorded(broker, tmp_path), definitions=DEFINITIONS)
    text = str(outcome)
    assert "- session 0: outcome of 0: disposition role first=0 settled state=rejected" in text
    assert "+ session 0: outcome of 0: disposition role first=0 settled state=accepted" in text
    assert "b'changed'" in text
    assert not outcome.same
