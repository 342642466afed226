"""Ends that are less than those of a whole machine: of the process of a source, and those asked for."""

from __future__ import annotations

import signal

import pytest

from compat_tests.crashes.extent import only_at_length
from compat_tests.crashes.processes import Incarnation
from fakeamqp import Broker

pytestmark = only_at_length

MESSAGES = 4000
MODES = ("spool", "commit", "none")


@pytest.fixture(params=["fakeamqp", "rabbitmq"])
def lanes(request, tmp_path, make_lane):
    """One for each mode, with queues of the test's own."""
    with Broker(history=0, trace=0) as broker:
        url = broker.url if request.param == "fakeamqp" else request.getfixturevalue("rabbitmq")
        if url is None:
            pytest.skip("RabbitMQ 4.3 cannot be had")
        options = {"maxMessagesPerTrigger": 500}
        yield {mode: make_lane(f"{mode}-{tmp_path.name}", url, ackMode=mode, **options) for mode in MODES}


def publish(pipeline, lanes):
    counts = {lane.name: MESSAGES // 2 for lane in lanes.values()}
    pipeline.publish_when_it_consumes(list(lanes.values()), counts)


def go_on(folder, lanes):
    for lane in lanes.values():
        lane.publish(MESSAGES // 2)
    with Incarnation(folder, list(lanes.values()), to_the_end=True) as pipeline:
        pipeline.finish()
    for lane in lanes.values():
        print(f"{lane.name}: {lane.outcome()}")


def check(lanes):
    outcomes = {mode: lane.outcome() for mode, lane in lanes.items()}
    assert [outcome.strange for outcome in outcomes.values()] == [[], [], []]
    assert (outcomes["spool"].lost, outcomes["spool"].twice) == ([], [])
    assert outcomes["commit"].lost == []
    assert outcomes["none"].twice == []
    assert lanes["spool"].changed_on_replay() == []


def in_the_middle(lanes):
    return lambda: all(lane.written() >= 2 for lane in lanes.values())


def test_each_ack_mode_keeps_guarantees_when_sources_are_killed(tmp_path, lanes):
    with Incarnation(tmp_path, list(lanes.values())) as pipeline:
        publish(pipeline, lanes)
        pipeline.wait_until(in_the_middle(lanes), "two batches are in each sink")
        pipeline.kill_sources()
        assert pipeline.wait() != 0, "the queries did not notice that their sources are gone"
    go_on(tmp_path, lanes)
    check(lanes)


@pytest.mark.parametrize("whom", ["the first process", "all processes"])
def test_each_ack_mode_keeps_guarantees_when_processes_get_sigterm(whom, tmp_path, lanes):
    with Incarnation(tmp_path, list(lanes.values())) as pipeline:
        publish(pipeline, lanes)
        pipeline.wait_until(in_the_middle(lanes), "two batches are in each sink")
        if whom == "all processes":
            pipeline.kill(signal.SIGTERM)
        else:
            pipeline.terminate()
            pipeline.wait_for_all()
    go_on(tmp_path, lanes)
    check(lanes)


def test_each_ack_mode_keeps_guarantees_when_query_is_killed_while_sink_holds_batch(tmp_path, lanes):
    """The sink has the batch, Spark has not noted it, and another consumer takes messages meanwhile."""
    for lane in lanes.values():
        lane.hold_after = 1
    with Incarnation(tmp_path, list(lanes.values())) as pipeline:
        publish(pipeline, lanes)
        pipeline.wait_until(lambda: all(lane.held() for lane in lanes.values()), "the sinks have batch 1")
    for lane in lanes.values():
        lane.hold_after = None
        lane.take(min(400, lane.ready()))
    go_on(tmp_path, lanes)
    check(lanes)
