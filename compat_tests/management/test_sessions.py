"""What the HTTP API tells of connections of AMQP 1.0 (compared by hand with RabbitMQ 4.3.6 and 4.0.5)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

import pytest

from fakeamqp import Broker

proton = pytest.importorskip("proton")
utils = pytest.importorskip("proton.utils")

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def get(broker: Broker, path: str) -> Any:
    url = urlsplit(broker.admin.management_url)
    login = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
    request = Request(
        f"http://{url.hostname}:{url.port}/api/{path}", headers={"Authorization": f"Basic {login}"}
    )
    with urlopen(request) as answer:
        return json.load(answer)


def connected(broker: Broker) -> Any:
    """A connection with a link in each direction, and one message published."""
    connection = utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{broker.port}", timeout=10)
    sender = connection.create_sender("/queues/q", name="out")
    connection.create_receiver("/queues/q", name="in")
    sender.send(proton.Message(body=b"x"))
    return connection


@pytest.fixture(params=["rabbitmq-4.0", "rabbitmq-4.3"])
def version(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def broker(version: Any) -> Iterator[Broker]:
    definitions = {"queues": [{"name": "q", "durable": True}]}
    with Broker(personality=version, management=True, definitions=definitions) as broker:
        connection = connected(broker)
        yield broker
        connection.close()


def test_connection_of_1_0_is_listed_without_channels(broker: Broker, version: str) -> None:
    [connection] = get(broker, "connections")
    assert (connection["protocol"], connection["frame_max"]) == ("AMQP 1-0", 32768)
    assert ("container_id" in connection) == (version == "rabbitmq-4.3")
    assert get(broker, f"connections/{quote(connection['name'])}/channels") == get(broker, "channels") == []
    [consumer] = get(broker, "consumers")
    details: object = [] if version == "rabbitmq-4.0" else {}
    assert (consumer["consumer_tag"], consumer["channel_details"]) == ("1", details)


def test_sessions_have_windows_and_links_since_4_1(broker: Broker, version: str) -> None:
    [connection] = get(broker, "connections")
    path = f"connections/{quote(connection['name'])}/sessions"
    if version == "rabbitmq-4.0":
        with pytest.raises(HTTPError, match="404"):
            get(broker, path)
        return
    [session] = get(broker, path)
    [incoming], [outgoing] = session.pop("incoming_links"), session.pop("outgoing_links")
    assert session == {
        "channel_number": 0,
        "handle_max": 255,
        "next_incoming_id": 1,
        "incoming_window": 399,
        "next_outgoing_id": 0,
        "remote_incoming_window": 2147483647,
        "remote_outgoing_window": 2147483646,
        "outgoing_unsettled_deliveries": 0,
    }
    assert incoming == {
        "handle": 0,
        "link_name": "out",
        "snd_settle_mode": "mixed",
        "target_address": "/queues/q",
        "max_message_size": 16777216,
        "delivery_count": 1,
        "credit": 169,
        "unconfirmed_messages": 0,
    }
    assert outgoing == {
        "handle": 1,
        "link_name": "in",
        "source_address": "/queues/q",
        "queue_name": "q",
        "send_settled": False,
        "max_message_size": "unlimited",
        "filter": [],
        "delivery_count": 0,
        "credit": 0,
        "consumer_timeout": False,
    }
