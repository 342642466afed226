"""The checks of a trace: they find every violation of a rule, and nothing in a correct trace."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9 import Client as Client09
from compat_tests.scripted.amqp_0_9_1 import Client
from compat_tests.unit.faults.server import FaultServer
from compat_tests.unit.trace.records import Record, lines
from fakeamqp.connection import PeerAddress
from fakeamqp.errors import FakeAMQPError
from fakeamqp.protocols.amqp_0_9.codec.methods import StreamPublish
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.trace import CheckFailed, ModelEvent, Trace, checks
from fakeamqp.trace.checks import checked
from fakeamqp.trace.checks.rows import runs
from fakeamqp.trace.report import QUERIES


@pytest.fixture
def server() -> FaultServer:
    return FaultServer()


@pytest.fixture
def client(server: FaultServer) -> Client:
    """A client with a queue, and a consumer of it that holds at most two messages."""
    client = server.client_with("q", channels=2)
    client.qos(2)
    client.consume("q", "tag")
    return client


def recorded(server: FaultServer) -> list[Record]:
    assert server.recorder is not None
    return lines(server.recorder.trace())


def broken(server: FaultServer) -> list[tuple[str, str]]:
    """Which rules are broken, and by whom."""
    return [(row["rule"], row["broken_by"]) for row in checks.conformance(recorded(server))]


def test_rules_cited_by_checks_exist_in_the_rules_of_0_9_1(request: pytest.FixtureRequest):
    known = (request.config.rootpath / "spec" / "rules" / "amqp-0-9-1.toml").read_text()
    for rule in checks.RULES.values():
        assert rule.spec is None or f'id = "{rule.spec}"' in known
    for name in ("fifo_violations", "unacked_high_water"):
        for cited in re.findall(r"0-9-1/[\w./-]+\w", QUERIES[name].description):
            assert f'id = "{cited}"' in known


def test_checks_of_events_and_of_recorded_lines_agree(server: FaultServer, client: Client):
    client.publish(routing_key="q")
    client.ack(7)
    assert server.recorder is not None
    events = server.recorder.trace().events
    for question in (checks.conformance, checks.unacked_high_water):
        assert question(events) == question(recorded(server)) != []


def test_a_check_finds_a_violation_at_its_row(server: FaultServer, client: Client):
    """Spark hands it one row after the other."""
    client.publish(routing_key="q")
    client.ack(7)
    [rows] = runs(recorded(server))
    check = checks.Conformance()
    [(number, violation)] = [(row.number, each) for row in rows for each in check.see(row)]
    assert (number, violation["rule"]) == (violation["number"], "settles-nothing")
    assert list(check.end()) == []


# --- what clients do wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "rule"),
    [((1, 1), "settled-twice"), ((9,), "settles-nothing"), ((0,), "settles-nothing")],
)
def test_ack_of_an_undelivered_or_settled_tag_is_a_finding(
    server: FaultServer, client: Client, tags: tuple[int, ...], rule: str
):
    client.publish(routing_key="q")
    for tag in tags:
        client.ack(tag)
    assert broken(server) == [(rule, "client")]


def test_ack_of_a_tag_covered_by_a_multiple_ack_is_a_finding(server: FaultServer, client: Client):
    client.fill("q", b"1", b"2")
    client.ack(2, multiple=True)
    client.ack(1)
    assert broken(server) == [("settled-twice", "client")]


@pytest.mark.parametrize("get", [True, False])
def test_ack_of_a_no_ack_delivery_is_a_finding(server: FaultServer, client: Client, get: bool):
    client.declare("r")
    if get:
        client.publish(routing_key="r")
        client.get("r", no_ack=True)
    else:
        client.consume("r", no_ack=True)
        client.publish(routing_key="r")
    client.ack(1)
    assert broken(server) == [("settles-no-ack", "client")]


def test_acks_sent_behind_a_channel_error_are_no_findings(server: FaultServer, client: Client):
    client.publish(routing_key="q")
    client.ack(9)
    client.ack(9)
    client.ack(1)
    assert broken(server) == [("settles-nothing", "client")]


def test_message_acked_in_a_rolled_back_transaction_can_be_acked_again(server: FaultServer, client: Client):
    client.call(m.TxSelect(), m.TxSelectOk)
    client.publish(routing_key="q", channel=2)
    client.delivery()
    client.ack(1)
    client.call(m.TxRollback(), m.TxRollbackOk)
    client.ack(1)
    client.call(m.TxCommit(), m.TxCommitOk)
    assert broken(server) == []


def test_method_on_an_unopened_channel_is_a_finding(server: FaultServer, client: Client):
    client.send(m.QueueDeclare(queue="r"), 7)
    client.send(m.QueueDeclare(queue="r"), 7)
    assert broken(server) == [("channel-not-open", "client")]


def test_method_after_a_channel_close_is_a_finding(server: FaultServer, client: Client):
    client.close_channel()
    client.send(m.ChannelFlow(active=True))
    assert ("after-channel-close", "client") in broken(server)


@pytest.mark.parametrize("octets", [CONTENT_HEADER.pack(60, 0, 1) + b"\0\0", b"x"])
def test_content_frame_without_a_method_is_a_finding(server: FaultServer, client: Client, octets: bytes):
    client.declare("r")
    client.send_frame(2 if len(octets) > 1 else 3, 1, octets)
    assert ("content-unannounced", "client") in broken(server)
    first = [row for row in recorded(server) if row["name"].startswith("content ")][:1]
    assert checks.conformance(first) == [], "what came before may be missing"


def test_method_after_the_end_of_its_connection_is_a_finding(server: FaultServer, client: Client):
    client.call(m.ConnectionClose(reply_code=200), m.ConnectionCloseOk, 0)
    rows = recorded(server)
    (declare,) = [row for row in rows if row["name"] == "queue.declare"]
    (close_ok,) = [{**row, "direction": "received"} for row in rows if row["name"] == "connection.close-ok"]

    def broken_by(*late: Record) -> list[str]:
        numbered = [{**row, "number": number} for number, row in enumerate((*rows, *late))]
        return [each["rule"] for each in checks.conformance(numbered)]

    assert broken_by() == broken_by(close_ok) == []
    assert broken_by(declare) == ["after-connection-close"]
    assert broken_by(close_ok, declare) == ["after-connection-close"]


def test_rows_have_the_session_number_of_their_channel(server: FaultServer, client: Client):
    client.close_channel()
    client.open_channel()
    [rows] = runs(recorded(server))
    assert [{row.session for row in rows if row.channel == channel} for channel in (0, 1, 2)] == [
        {0},
        {1, 2},
        {1},
    ]


def test_publish_without_its_content_is_a_finding(server: FaultServer, client: Client):
    client.send(m.BasicPublish(routing_key="q"))
    client.send(m.QueueDeclare(queue="r"))
    assert ("content-incomplete", "client") in broken(server)


# --- what a broker does wrong, because a fault makes it -----------------------------------------------------


def test_duplicated_delivery_is_a_finding(server: FaultServer, client: Client):
    server.faults.on("basic.deliver", direction="sent").duplicate().once()
    client.fill("q", b"1", b"2")
    assert broken(server) == [("delivery-made-up", "broker")]


def test_dropped_delivery_is_a_finding(server: FaultServer, client: Client):
    server.faults.on("basic.deliver", direction="sent").drop().once()
    client.fill("q", b"1", b"2")
    assert broken(server) == [("delivery-not-sent", "broker")]


def test_delivery_to_a_consumer_without_consume_ok_is_a_finding(server: FaultServer, client: Client):
    server.faults.on("basic.consume-ok", direction="sent").drop()
    client.declare("r")
    client.send(m.BasicConsume(queue="r", consumer_tag="other"))
    client.publish(routing_key="r")
    assert broken(server) == [("delivery-without-consumer", "broker")]


def test_publish_without_its_confirm_is_a_finding(server: FaultServer):
    publisher = server.publisher()
    server.faults.on("basic.ack", direction="sent").drop().once()
    publisher.publish(b"1", b"2")
    found = checks.conformance(recorded(server))
    assert [(row["rule"], row["broken_by"], row["name"]) for row in found] == [
        ("unconfirmed", "broker", "basic.publish")
    ]


def test_duplicated_confirm_is_a_finding(server: FaultServer):
    publisher = server.publisher()
    server.faults.on("basic.ack", direction="sent").duplicate().once()
    publisher.publish(b"1", b"2")
    assert broken(server) == [("confirmed-twice", "broker")]


# --- recordings of other brokers, which nobody makes here ---------------------------------------------------


def without(records: list[Record], name: str) -> list[Record]:
    return [record for record in records if record["name"] != name]


def test_delivery_after_cancel_ok_is_a_finding(server: FaultServer, client: Client):
    client.publish(routing_key="q")
    client.delivery()
    client.call(m.BasicCancel(consumer_tag="tag"), m.BasicCancelOk)
    records = recorded(server)
    assert checks.conformance(records) == []
    (deliver,) = [record for record in records if record["name"] == "basic.deliver"]
    late = {**deliver, "number": len(records)}
    assert {row["rule"] for row in checks.conformance([*without(records, "basic.deliver"), late])} >= {
        "delivery-after-cancel"
    }


def test_high_water_counts_deliveries_beyond_the_prefetch(server: FaultServer, client: Client):
    client.fill("q", b"1", b"2", b"3")
    records = recorded(server)
    of_consumer = [row for row in checks.unacked_high_water(records) if row["scope"] == "consumer"]
    assert [(row["high_water"], row["prefetch"], row["exceedances"]) for row in of_consumer] == [(2, 2, 0)]
    for record in records:
        if record["name"] == "consumer added":
            record["facts"]["prefetch"] = 1
    row = checks.unacked_high_water(records)[0]
    assert (row["scope"], row["high_water"], row["exceedances"]) == ("consumer", 2, 1)
    second = [record for record in records if record["name"] == "delivered"][1]
    assert row["first_exceedance"] == second["number"]


def test_high_water_of_a_channel_is_compared_with_its_global_prefetch(server: FaultServer):
    client = server.client_with("q")
    client.qos(3, global_=True)
    for tag in "ab":
        client.consume("q", tag)
    client.fill("q", *[b"x"] * 9)
    client.send(m.BasicQos(prefetch_count=1, global_=True))
    rows = {row["consumer_tag"]: row for row in checks.unacked_high_water(recorded(server))}
    assert (rows[None]["high_water"], rows[None]["prefetch"], rows[None]["exceedances"]) == (3, 3, 0)
    assert rows["a"]["high_water"] + rows["b"]["high_water"] == 3


def out_of_order(server: FaultServer) -> list[tuple[Any, Any]]:
    """Messages that were overtaken, and by which, had the two come into the queue the other way round."""
    records = recorded(server)
    first, second = [
        record for record in records if record["name"] == "enqueued" and record["facts"]["queue"] == "q"
    ]
    first["number"], second["number"] = second["number"], first["number"]
    return [(row["message"], row["overtaken_by"]) for row in checks.fifo_violations(records)]


def test_fifo_violation_has_the_place_of_the_overtaken_message(server: FaultServer):
    client = server.client_with("q")
    client.fill("q", b"1", b"2")
    client.consume("q", "tag")
    records = recorded(server)
    first, second = [record for record in records if record["name"] == "enqueued"]
    first["number"], second["number"] = second["number"], first["number"]
    (row,) = checks.fifo_violations(records)
    assert list(row) == [
        *("run", "number", "alias", "channel", "session", "queue", "consumer_tag", "delivery_tag"),
        *("priority", "message", "enqueued_number", "overtaken_by", "overtaken_by_number"),
    ]
    assert (row["channel"], row["session"], row["queue"], row["consumer_tag"]) == (1, 1, "q", "tag")


@pytest.mark.parametrize("reader", ["one", "several", "priorities", "dead letters"])
def test_fifo_violation_needs_one_reader_equal_priorities_and_no_dead_letters(
    server: FaultServer, reader: str
):
    client = server.client_with("dead", channels=2)
    arguments: dict[str, Any] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    client.declare("before", arguments=arguments)
    client.declare("q")
    if reader == "dead letters":
        client.fill("before", b"1", b"2")
        for _ in range(2):
            got = client.get("before")
            assert got is not None
            client.reject(got.method.delivery_tag)
    else:
        client.publish(b"1", routing_key="q")
        client.publish(b"2", routing_key="q", priority=1 if reader == "priorities" else None)
    client.get("q")
    client.get("q", channel=2 if reader == "several" else 1)
    assert checks.fifo_violations(recorded(server)) == []
    assert out_of_order(server) == ([(2, 1)] if reader == "one" else [])


def test_requeued_message_may_be_delivered_later(server: FaultServer):
    client = server.client_with("q")
    client.fill("q", b"1", b"2")
    first, _ = client.get("q"), client.get("q")
    assert first is not None
    client.reject(first.method.delivery_tag, requeue=True)
    client.get("q")
    assert checks.fifo_violations(recorded(server)) == []
    names = [record["name"] for record in recorded(server) if record["kind"] == "model"]
    assert names[-4:] == ["delivered", "delivered", "requeued", "delivered"]


def test_rules_of_0_9_1_do_not_apply_to_0_9_connections(server: FaultServer, client: Client):
    server.protocol = "0-9"
    other = Client09(server, PeerAddress(port=40_009))
    other.handshake()
    other.open_channel()
    other.send_content(StreamPublish(routing_key="q"), body=b"no rule of 0-9-1 knows this class")
    assert broken(server) == []
    names = [record["name"] for record in recorded(server)]
    assert "stream.publish" in names and "content body" in names


def test_checks_import_no_spark_or_pyarrow():
    program = "import sys\nimport fakeamqp.spark.traces, fakeamqp.trace.checks\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    modules = {name.partition(".")[0] for name in done.stdout.split()}
    assert "fakeamqp" in modules and not modules & {"pyspark", "pyarrow", "pika", "py4j"}


# --- Trace.findings ---------------------------------------------------------------------------------------


def trace_of(server: FaultServer) -> Trace:
    assert server.recorder is not None
    return server.recorder.trace()


def test_a_correct_trace_has_no_findings(server: FaultServer, client: Client):
    client.publish(routing_key="q")
    client.ack(1)
    assert trace_of(server).findings() == ()


def test_a_finding_describes_the_violation_and_its_place(server: FaultServer, client: Client):
    client.publish(routing_key="q")
    server.advance(1.5)
    client.ack(7)
    trace = trace_of(server)
    (finding,) = trace.findings()
    event = trace.events[finding.number]
    assert finding == checks.Finding(
        check="conformance",
        rule="settles-nothing",
        text="a settlement of a tag that was not delivered: basic.ack delivery_tag=7",
        number=finding.number,
        time=1.5,
        alias="c1",
        channel=1,
        broken_by="client",
        spec="0-9-1/basic.ack/multiple-exists",
    )
    assert (event.name, event.time) == ("basic.ack", 1.5)
    assert str(finding) == (
        f"event {finding.number} (1.500 s, c1 channel 1): settles-nothing by the client: "
        "a settlement of a tag that was not delivered: basic.ack delivery_tag=7"
    )
    with pytest.raises(AttributeError):
        finding.rule = "other"  # type: ignore[misc]


def test_an_expectation_of_no_findings_fails_with_their_report(server: FaultServer, client: Client):
    client.publish(routing_key="q")
    trace_of(server).expect_no_findings()
    client.ack(7)
    trace = trace_of(server)
    with pytest.raises(CheckFailed) as failure:
        trace.expect_no_findings("conformance", "lost")
    assert failure.value.findings == trace.findings() != ()
    trace.expect_no_findings(allow="settles-nothing")
    trace.expect_no_findings("lost")


def test_checks_are_chosen_by_name(server: FaultServer, client: Client):
    client.publish(routing_key="q")
    client.ack(7)
    trace = trace_of(server)
    assert trace.findings("fifo") == trace.findings("fifo", "prefetch") == ()
    assert [finding.check for finding in trace.findings("prefetch", "conformance")] == ["conformance"]


def test_an_unknown_check_is_an_error_that_names_the_nearest(server: FaultServer):
    with pytest.raises(checks.UnknownCheck) as raised:
        trace_of(server).findings("conformence")
    assert str(raised.value) == "there is no check 'conformence'; did you mean 'conformance'?"
    assert isinstance(raised.value, FakeAMQPError)
    with pytest.raises(checks.UnknownCheck, match="there are 'answers', 'conformance', 'duplicates', "):
        trace_of(server).findings("x")


def swapped(trace: Trace, first: int, second: int) -> Trace:
    """The trace with two events in each other's place."""
    events = list(trace.events)
    events[first], events[second] = events[second], events[first]
    return Trace.of(events)


def with_prefetch(trace: Trace, count: int) -> Trace:
    """The trace as if its consumers had this prefetch."""
    return Trace.of(
        replace(event, facts={**event.facts, "prefetch": count})
        if isinstance(event, ModelEvent) and event.name == "consumer added"
        else event
        for event in trace.events
    )


def test_an_overtaken_message_is_a_finding(server: FaultServer):
    client = server.client_with("q")
    client.publish(b"1", routing_key="q")
    client.publish(b"2", routing_key="q")
    client.get("q")
    client.get("q")
    trace = trace_of(server)
    enqueued = [number for number, event in enumerate(trace.events) if event.name == "enqueued"]
    (finding,) = swapped(trace, *enqueued).findings("fifo")
    assert (finding.rule, finding.broken_by, finding.alias, finding.channel) == (
        "overtaken",
        "broker",
        "c1",
        1,
    )
    assert finding.spec == "0-9-1/server-model/order-preserved"
    assert finding.text.endswith("message b'2' delivered from queue 'q' to a get on c1 channel 1")


def test_deliveries_beyond_the_prefetch_are_a_finding(server: FaultServer, client: Client):
    for number in range(2):
        client.publish(b"%d" % number, routing_key="q")
    trace = with_prefetch(trace_of(server), 1)
    (finding,) = trace.findings()
    assert (finding.check, finding.rule, finding.broken_by) == ("prefetch", "prefetch-exceeded", "broker")
    assert finding.spec == "0-9-1/basic.qos/prefetch-count-01"
    text = "message b'1' delivered from queue 'q' to consumer 'tag' on c1 channel 1"
    assert trace.events[finding.number].text == text
    assert finding.text == (
        "consumer 'tag' held up to 2 unsettled messages, the highest prefetch was 1 "
        "(1 of 2 deliveries exceeded it)"
    )


def test_findings_of_all_checks_are_in_the_order_of_events(server: FaultServer, client: Client):
    for number in range(2):
        client.publish(b"%d" % number, routing_key="q")
    client.ack(9)
    found = with_prefetch(trace_of(server), 1).findings()
    assert [finding.check for finding in found] == ["prefetch", "conformance"]
    assert found[0].number < found[1].number


def test_rules_cited_by_fifo_and_prefetch_findings_exist(request: pytest.FixtureRequest):
    known = (request.config.rootpath / "spec" / "rules" / "amqp-0-9-1.toml").read_text()
    for spec in (checked._ORDER, checked._PREFETCH):
        assert f'id = "{spec}"' in known


def test_high_water_has_the_number_of_the_first_delivery_that_reached_it(server: FaultServer, client: Client):
    def deliver(count: int) -> list[int]:
        client.fill("q", *[b"x"] * count)
        return [client.delivery().method.delivery_tag for _ in range(count)]

    def high_water() -> tuple[int, int]:
        records = recorded(server)
        (row,) = [row for row in checks.unacked_high_water(records) if row["scope"] == "consumer"]
        delivered = [record["number"] for record in records if record["name"] == "delivered"]
        return row["high_water"], delivered.index(row["high_water_number"]) + 1

    client.ack(*deliver(1))
    deliver(1)
    assert high_water() == (1, 1), "the second delivery has only the same level"
    (third,) = deliver(1)
    assert high_water() == (2, 3)
    client.ack(third, multiple=True)
    deliver(1)
    assert high_water() == (2, 3)
    deliver(1)
    assert high_water() == (2, 3), "the fifth delivery has only the same level"
