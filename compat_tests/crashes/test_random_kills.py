"""Four times `kill -9` at random points, while messages are published."""

from __future__ import annotations

import random
from contextlib import ExitStack

import pytest

from compat_tests.crashes.extent import MESSAGES, SEEDS, only_at_length
from compat_tests.crashes.points import random_points
from compat_tests.crashes.processes import Incarnation
from fakeamqp import Broker

# Five sessions start one after the other: a minute on a free machine, and several on a busy one.
pytestmark = pytest.mark.timeout(3600)

KILLS = 4


def run(folder, lanes, draw):
    """Publish to all lanes, and kill and start the pipeline meanwhile, then let it come to its end."""
    part = MESSAGES // (KILLS + 1)
    points = random_points(draw, lanes, part)
    for _ in range(KILLS):
        with ExitStack() as stack:
            pipeline = stack.enter_context(Incarnation(folder, lanes))
            pipeline.wait_until(lambda: all(lane.consumers() for lane in lanes), "it consumes")
            point = next(points)
            for lane in lanes:
                stack.enter_context(lane.publishing(part))
            pipeline.wait_until(point.reached, str(point))
            pipeline.kill()
            print(f"killed at {point}; published until then:", *(len(lane.published) for lane in lanes))
    for lane in lanes:
        lane.publish(MESSAGES - len(lane.published))
    with Incarnation(folder, lanes, to_the_end=True) as pipeline:
        pipeline.finish()


def brokers(broker, rabbitmq):
    return {"fakeamqp": broker.url, **({"rabbitmq": rabbitmq} if rabbitmq is not None else {})}


@pytest.mark.parametrize("seed", SEEDS)
def test_spool_loses_and_duplicates_no_message_under_random_kills(seed, tmp_path, rabbitmq, make_lane):
    with Broker(history=0, trace=0) as broker:
        lanes = [
            make_lane(f"{name}{kind}", url, ids=ids, maxMessagesPerTrigger=MESSAGES * 7 // 80)
            for name, url in brokers(broker, rabbitmq).items()
            for kind, ids in (("", None), ("-shared-ids", 40))
        ]
        run(tmp_path, lanes, random.Random(seed))
        for lane in lanes:
            outcome = lane.outcome()
            print(f"{lane.name}: {outcome}")
            assert outcome.published == MESSAGES
            assert outcome.lost == []
            assert outcome.twice == []
            assert outcome.strange == []
            assert lane.changed_on_replay() == []
            assert lane.ready() == 0


@only_at_length
@pytest.mark.parametrize("seed", SEEDS)
def test_commit_mode_loses_and_at_most_once_mode_duplicates_no_message_under_random_kills(
    seed, tmp_path, rabbitmq, make_lane
):
    with Broker(history=0, trace=0) as broker:
        lanes = [
            make_lane(f"{name}-{mode}", url, maxMessagesPerTrigger=700, ackMode=mode)
            for name, url in brokers(broker, rabbitmq).items()
            for mode in ("commit", "none")
        ]
        run(tmp_path, lanes, random.Random(seed))
        for lane in lanes:
            outcome = lane.outcome()
            print(f"{lane.name}: {outcome}")
            assert outcome.strange == []
            if lane.options["ackMode"] == "commit":
                assert outcome.lost == []  # Any number may be there twice.
            else:
                assert outcome.twice == []  # Any number may be lost.
