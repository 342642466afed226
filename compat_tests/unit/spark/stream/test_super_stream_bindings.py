"""Partitions of super streams by the bindings of their exchange, which RabbitMQ's HTTP API lists."""

from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, urlsplit

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.stream.streams import (
    EVERYTHING,
    batch_reader,
    options,
    positions,
    publisher,
    rows,
    stream_reader,
)
from fakeamqp import Broker
from fakeamqp.spark.errors import BrokerUnreachable, LoginRefused, OptionError
from fakeamqp.spark.stream import discovery
from fakeamqp.spark.wire.management import bound_queues

REGIONS = ("emea", "amer", "apac")
VIRTUAL_HOST = "sales/north"
_EVERYTHING = dict.fromkeys(("configure", "write", "read"), ".*")
DEFINITIONS = {
    "vhosts": [{"name": VIRTUAL_HOST}],
    "permissions": [{"user": "guest", "vhost": VIRTUAL_HOST, **_EVERYTHING}],
}


@pytest.fixture
def broker():
    with Broker(management=True, definitions=DEFINITIONS) as broker:
        yield broker


@pytest.fixture
def regions(log, monkeypatch):
    """Adds partitions of `orders`, as `rabbitmq-streams add_super_stream --binding-keys` does."""
    monkeypatch.setattr(discovery, "_FIRST_PAUSE", 0.0)
    log.channel.exchange_declare("orders", "direct", durable=True, arguments={"x-super-stream": True})
    count = 0

    def add(region):
        nonlocal count
        log.declare(f"orders-{region}")
        order = {"x-stream-partition-order": count}
        log.channel.queue_bind(f"orders-{region}", "orders", region, arguments=order)
        count += 1

    for region in REGIONS:
        add(region)
    return add


@pytest.fixture
def source(broker):
    return {"superStream": "orders", "managementUrl": broker.admin.management_url}


def values(found):
    return sorted(int(row["value"]) for row in found)


def publish(log, region, *numbers):
    for number in numbers:
        log.channel.basic_publish("orders", region, str(number).encode())


# --- partitions -------------------------------------------------------------------------------------------


def test_a_batch_read_finds_partitions_with_any_name(broker, log, regions):
    for number, region in enumerate(REGIONS):
        publish(log, region, number, number + 10)
    reader = batch_reader(broker.url, superStream="orders", managementUrl=broker.admin.management_url)
    assert [task.range.stream for task in reader.partitions()] == [f"orders-{region}" for region in REGIONS]
    assert values(rows(reader)) == [0, 1, 2, 10, 11, 12]


def test_a_query_picks_up_new_bindings(log, regions, follow):
    publish(log, "emea", 1)
    reader = follow()
    start = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    assert positions(start) == {"orders-emea": 1, "orders-amer": 0, "orders-apac": 0}
    regions("africa")
    publish(log, "africa", 2, 3)
    end = reader.latestOffset(start, EVERYTHING)
    assert values(rows(reader, start, end)) == [2, 3]


def test_a_stream_without_its_binding_is_read_to_its_end(log, regions, follow):
    publish(log, "emea", 1)
    reader = follow()
    start = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    publish(log, "emea", 2)
    log.channel.queue_unbind("orders-emea", "orders", "emea")
    for each in (reader, follow()):
        assert values(rows(each, start, each.latestOffset(start, EVERYTHING))) == [2]


def test_bindings_to_others_than_streams_are_left_out(log, regions, follow, caplog):
    log.channel.queue_declare("audit", durable=True)
    log.channel.queue_bind("audit", "orders", "emea")
    log.channel.exchange_declare("copies", "fanout", durable=True)
    log.channel.exchange_bind("copies", "orders", "emea")
    publish(log, "emea", 1)
    reader = follow()
    start = reader.initialOffset()
    assert values(rows(reader, start, reader.latestOffset(start, EVERYTHING))) == [1]
    warned = len(caplog.records)
    assert "'audit' is no stream, so it is no partition of 'orders'" in caplog.text
    assert positions(reader.latestOffset(start, EVERYTHING)).keys() == {
        f"orders-{region}" for region in REGIONS
    }
    assert len(caplog.records) == warned


def test_super_stream_and_virtual_host_names_with_special_characters_are_found(broker):
    url = urlsplit(broker.url)._replace(path=f"/{quote(VIRTUAL_HOST, safe='')}").geturl()
    name = "órders/é 1?"
    with publisher(url) as log:
        log.channel.exchange_declare(name, "direct", durable=True)
        log.declare("stück/1")
        log.channel.queue_bind("stück/1", name, "x")
        log.channel.basic_publish(name, "x", b"7")
    reader = batch_reader(url, superStream=json.dumps([name]), managementUrl=broker.admin.management_url)
    assert values(rows(reader)) == [7]


@pytest.mark.parametrize("bound", [False, True])
def test_super_stream_without_exchange_or_stream_binding_is_refused(broker, log, follow, bound):
    if bound:
        log.channel.exchange_declare("orders", "direct", durable=True)
        log.channel.queue_declare("audit", durable=True)
        log.channel.queue_bind("audit", "orders", "emea")
    words = "'orders' has no partitions: there is no exchange of this name in the virtual host, or it has no"
    with pytest.raises(OptionError, match=words):
        batch_reader(broker.url, superStream="orders", managementUrl=broker.admin.management_url).partitions()
    reader = follow()
    for call in (reader.initialOffset, lambda: reader.latestOffset({}, EVERYTHING)):
        with pytest.raises(OptionError, match=words):
            call()


# --- streams by a pattern ---------------------------------------------------------------------------------


@pytest.fixture
def pattern(broker, monkeypatch):
    """The options for the streams whose whole name matches."""
    monkeypatch.setattr(discovery, "_FIRST_PAUSE", 0.0)
    return lambda text: {"streamPattern": text, "managementUrl": broker.admin.management_url}


def test_a_batch_read_finds_the_streams_whose_whole_name_matches(broker, log, pattern):
    for number, name in enumerate(["audit.1", "audit.2", "my.audit.1", "audit.1.old", "orders"]):
        log.declare(name)
        log.publish(name, number)
    log.channel.queue_declare("audit.3", durable=True)
    log.channel.basic_publish("", "audit.3", b"99")
    assert values(rows(batch_reader(broker.url, **pattern(r"audit\.\d")))) == [0, 1]
    assert values(rows(batch_reader(broker.url, **pattern("audit.*|orders")))) == [0, 1, 3, 4]
    with pytest.raises(OptionError, match="is 'audit', and matches the whole name of no stream"):
        batch_reader(broker.url, **pattern("audit")).partitions()


def test_a_query_picks_up_new_streams_that_match(broker, log, pattern):
    log.declare("audit.1")
    log.publish("audit.1", 1)
    reader = stream_reader(broker.url, **pattern("audit.*"))
    try:
        start = reader.latestOffset(reader.initialOffset(), EVERYTHING)
        assert positions(start) == {"audit.1": 1}
        log.declare("audit.2")
        log.declare("orders")
        log.publish("audit.2", 2, 3)
        end = reader.latestOffset(start, EVERYTHING)
        assert positions(end) == {"audit.1": 1, "audit.2": 2}
        assert values(rows(reader, start, end)) == [2, 3]
    finally:
        reader.stop()
    log.publish("audit.2", 4)
    narrow = stream_reader(broker.url, **pattern(r"audit\.1"))
    try:
        assert narrow.latestOffset(end, EVERYTHING) == end
    finally:
        narrow.stop()


# --- login ------------------------------------------------------------------------------------------------


def test_the_login_is_that_of_the_connection(broker, log, regions):
    place = f"http://{broker.admin.management_url.rpartition('@')[2]}"
    publish(log, "emea", 1)
    reader = batch_reader(broker.url, superStream="orders", managementUrl=f"{place}/")
    assert values(rows(reader)) == [1]


def test_login_refused_by_management_api_raises_login_refused(broker, log, regions):
    place = broker.admin.management_url.rpartition("@")[2]
    reader = batch_reader(broker.url, superStream="orders", managementUrl=f"http://guest:s3cret@{place}")
    with pytest.raises(LoginRefused, match=r"refuses user 'guest' \(401\): the HTTP API needs") as refused:
        reader.partitions()
    assert "s3cret" not in str(refused.value)


def test_a_certificate_is_no_login_for_the_api():
    pytest.importorskip("trustme")
    with Broker(tls=True, users={"job": {}}) as broker:
        made = broker.tls.client_certificate("job")
        login = {
            "amqp.caFile": broker.tls.ca_file,
            "amqp.mechanism": "EXTERNAL",
            "amqp.certFile": made.certificate,
            "amqp.keyFile": made.key,
        }
        given = {"superStream": "orders", "managementUrl": "http://host:15672", **login}
        with pytest.raises(OptionError, match="'managementUrl' needs a user, as http://user:password@host"):
            batch_reader(broker.url, **given).partitions()


# --- an API that does not answer as RabbitMQ does ---------------------------------------------------------


class Answers(BaseHTTPRequestHandler):
    """Answers with what the server has: a status, and a body."""

    def do_GET(self):
        self.server.asked.append((self.path, self.headers["Authorization"]))
        status, body = self.server.answer
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing to print."""


@pytest.fixture
def api():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.answer, server.asked = (200, b"[]"), []
    server.url = f"http://me:s3cret@127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def ask(url, **given):
    found = options("amqp://host/", superStream="orders", managementUrl=url, **given)
    return bound_queues(found.management_url, found.connection, "orders")


def test_partitions_are_ordered_by_partition_order_argument_of_binding(api):
    def binding(queue, **arguments):
        return {"destination": queue, "destination_type": "queue", "arguments": arguments}

    order = "x-stream-partition-order"
    bindings = [binding("c"), binding("b", **{order: 10}), binding("a", **{order: 2}), binding("b")]
    api.answer = 200, json.dumps(bindings).encode()
    assert ask(f"{api.url}/prefix/") == ["a", "b", "c"]
    [(path, login)] = api.asked
    assert path == "/prefix/api/exchanges/%2F/orders/bindings/source"
    assert login == "Basic bWU6czNjcmV0"


@pytest.mark.parametrize(
    ("status", "body", "error", "words"),
    [
        (403, b"", LoginRefused, r"refuses user 'me' \(403\)"),
        (503, b"starting", BrokerUnreachable, "answered with 503 Service Unavailable"),
        (302, b"", BrokerUnreachable, "answered with 302 Found"),
        (200, b"<html>", BrokerUnreachable, "answered with no JSON"),
        (200, b"\xff", BrokerUnreachable, "answered with no JSON"),
        (200, b"{}", None, ""),
        (200, b"17", BrokerUnreachable, "answered with no list of bindings"),
        (200, b'["orders-0"]', BrokerUnreachable, "answered with no list of bindings"),
        (200, b'[{"destination_type": "queue"}]', BrokerUnreachable, "answered with no list of bindings"),
    ],
)
def test_invalid_answer_of_bindings_api_is_refused_without_showing_password(api, status, body, error, words):
    api.answer = status, body
    if error is None:
        assert ask(api.url) == []
    else:
        with pytest.raises(error, match=words) as raised:
            ask(api.url)
        assert f"http://127.0.0.1:{api.server_port}" in str(raised.value)
        assert "s3cret" not in str(raised.value)
    assert len(api.asked) == 1


def test_unreachable_management_api_raises_broker_unreachable():
    with pytest.raises(BrokerUnreachable, match=r"cannot ask http://127\.0\.0\.1:1: .*refused"):
        ask("http://me:s3cret@127.0.0.1:1")


def test_management_api_certificate_is_verified_unless_verify_is_false(api):
    pytest.importorskip("trustme")
    with Broker(tls=True) as broker:
        made = broker.tls.client_certificate("127.0.0.1")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.certificate, made.key)
        api.socket = context.wrap_socket(api.socket, server_side=True)
        url = f"https://me:s3cret@127.0.0.1:{api.server_port}"
        with pytest.raises(BrokerUnreachable, match="CERTIFICATE_VERIFY_FAILED"):
            ask(url)
        assert ask(url, **{"amqp.verify": "false"}) == []


def test_a_query_goes_on_while_the_api_does_not_answer(api, log, regions, follow, caplog):
    bindings = [
        {"destination": f"orders-{region}", "destination_type": "queue", "arguments": {}}
        for region in REGIONS
    ]
    api.answer = 200, json.dumps(bindings[:2]).encode()
    reader = follow(managementUrl=api.url)
    start = reader.initialOffset()
    assert positions(reader.latestOffset(start, EVERYTHING)).keys() == {"orders-emea", "orders-amer"}
    publish(log, "amer", 1)
    publish(log, "apac", 2)
    api.answer = 401, b""
    end = reader.latestOffset(start, EVERYTHING)
    assert values(rows(reader, start, end)) == [1]
    assert "'orders': new streams are not found: http://127.0.0.1" in caplog.text
    api.answer = 200, json.dumps(bindings).encode()
    assert values(rows(reader, end, reader.latestOffset(end, EVERYTHING))) == [2]


# --- the option -------------------------------------------------------------------------------------------
