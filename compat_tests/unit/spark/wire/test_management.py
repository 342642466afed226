"""RabbitMQ's HTTP API about queues: their details, and the streams of a virtual host."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from urllib.parse import quote, urlsplit

import pytest

from compat_tests.unit.spark.wire.peers import options
from fakeamqp import Broker
from fakeamqp.spark.errors import BrokerUnreachable, LoginRefused, QueueNotFound
from fakeamqp.spark.wire import management
from fakeamqp.spark.wire.management import QueueDetails, queue_details, streams_matching

VIRTUAL_HOST = "sales/north"
QUEUES = {
    "limited": {"x-queue-type": "quorum", "x-delivery-limit": 7},
    "börse/1?": {"x-queue-type": "quorum"},
    "orders-1": {"x-queue-type": "stream"},
    "orders-0": {"x-queue-type": "stream"},
    "orders-0-old": {"x-queue-type": "stream"},
    "orders-2": {"x-queue-type": "classic"},
}
DEFINITIONS = {
    "vhosts": [{"name": VIRTUAL_HOST}],
    "permissions": [
        {"user": "guest", "vhost": VIRTUAL_HOST, **dict.fromkeys(("configure", "write", "read"), ".*")}
    ],
    "queues": [
        {"name": name, "vhost": VIRTUAL_HOST, "durable": True, "auto_delete": False, "arguments": arguments}
        for name, arguments in QUEUES.items()
    ],
    "policies": [
        {
            "name": "limit",
            "vhost": VIRTUAL_HOST,
            "pattern": "^b",
            "apply-to": "queues",
            "priority": 0,
            "definition": {"delivery-limit": 3},
        }
    ],
}


@pytest.fixture(params=["rabbitmq-4.0", "rabbitmq-4.3"])
def broker(request):
    with Broker(management=True, definitions=DEFINITIONS, personality=request.param) as broker:
        yield broker


@pytest.fixture
def given(broker):
    return options(urlsplit(broker.url)._replace(path=f"/{quote(VIRTUAL_HOST, safe='')}").geturl())


def test_details_of_a_queue_have_its_type_arguments_and_effective_policy(broker, given):
    assert queue_details(broker.admin.management_url, given, "limited") == QueueDetails(
        "quorum", {"x-queue-type": "quorum", "x-delivery-limit": 7}, {}
    )
    assert queue_details(broker.admin.management_url, given, "börse/1?") == QueueDetails(
        "quorum", {"x-queue-type": "quorum"}, {"delivery-limit": 3}
    )
    assert queue_details(broker.admin.management_url, given, "orders-0").type == "stream"


def test_unknown_queue_is_not_found_without_showing_the_password(broker, given):
    place = broker.admin.management_url.rpartition("@")[2]
    said = rf"http://{place} knows no queue 'nowhere' in virtual host '{VIRTUAL_HOST}' \(404\)"
    with pytest.raises(QueueNotFound, match=said):
        queue_details(broker.admin.management_url, given, "nowhere")


def test_streams_match_a_pattern_from_beginning_to_end(broker, given):
    assert streams_matching(broker.admin.management_url, given, r"orders-\d+") == ["orders-0", "orders-1"]
    assert streams_matching(broker.admin.management_url, given, "orders") == []
    assert streams_matching(broker.admin.management_url, given, ".*") == [
        "orders-0",
        "orders-0-old",
        "orders-1",
    ]


@pytest.fixture
def asked(monkeypatch):
    """Answers in place of an API, and the paths that it was asked for."""
    asked = SimpleNamespace(answers=[], paths=[])

    def answer(request, timeout):
        asked.paths.append(request.selector)
        return io.BytesIO(json.dumps(asked.answers.pop(0)).encode())

    monkeypatch.setattr(management, "build_opener", lambda *_: SimpleNamespace(open=answer))
    return asked


def test_policies_of_this_moment_are_asked_for_before_those_of_the_statistics(asked):
    """RabbitMQ 4.3 tells them without the statistics, and 4.0 some seconds after the queue was declared."""
    plain, given = {"type": "quorum", "arguments": {}}, {"effective_policy_definition": {"delivery-limit": 3}}
    query = "/api/queues/%2F/q?columns=type,arguments,effective_policy_definition"
    for answers, policy in (
        ([plain | given], {"delivery-limit": 3}),
        ([plain, plain | given], {"delivery-limit": 3}),
        ([plain, plain], None),
    ):
        asked.answers, asked.paths = [*answers], []
        assert queue_details("http://me:me@host", options(), "q") == QueueDetails("quorum", {}, policy)
        assert asked.paths == [f"{query}&disable_stats=true", query][: len(answers)]


def test_streams_are_sorted_in_whatever_order_they_come(asked):
    asked.answers = [[{"name": name, "type": "stream"} for name in ("b", "c", "a")]]
    assert streams_matching("http://me:me@host", options(), ".") == ["a", "b", "c"]


@pytest.mark.parametrize("answer", [17, ["orders"], [{"name": "orders"}]])
def test_answer_that_is_none_is_refused(asked, answer):
    for ask, what in ((queue_details, "queue"), (streams_matching, "list of queues")):
        asked.answers = [answer]
        with pytest.raises(BrokerUnreachable, match=f"^http://host answered with no {what}; is it RabbitMQ"):
            ask("http://me:s3cret@host", options(), "orders")


def test_streams_are_those_of_the_virtual_host(broker):
    assert streams_matching(broker.admin.management_url, options(broker.url), ".*") == []
    with pytest.raises(BrokerUnreachable, match="answered with 404"):
        streams_matching(broker.admin.management_url, options(f"{broker.url}2"), ".*")


def test_refused_login_is_not_tried_again(broker, given):
    place = broker.admin.management_url.rpartition("@")[2]
    for ask in (queue_details, streams_matching):
        with pytest.raises(LoginRefused, match=r"refuses user 'me' \(401\)") as caught:
            ask(f"http://me:s3cret@{place}", given, "limited")
        assert "s3cret" not in str(caught.value)
