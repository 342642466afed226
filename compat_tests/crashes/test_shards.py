"""Shards on a cluster of processes: executors and the driver are killed while messages are published."""

from __future__ import annotations

import random

import pytest

from compat_tests.crashes.extent import AT_LENGTH, SEEDS
from compat_tests.crashes.processes import Incarnation
from compat_tests.crashes.test_random_kills import brokers
from fakeamqp import Broker

pytestmark = pytest.mark.timeout(3600)

MASTER = "local-cluster[3,1,1024]"
SHARDS = 3
LIVES = 3 if AT_LENGTH else 2
EXECUTORS = 2
MESSAGES = 3000 * LIVES


def moment(draw, lane):
    """A point of a batch, to be reached from now on."""
    rows, segments = lane.taken_by_sink() + draw.randrange(1, 900), lane.segments() + draw.randrange(1, 6)
    return draw.choice(
        [
            (f"{rows} rows in the sink", lambda: lane.taken_by_sink() >= rows),
            (f"{segments} segments", lambda: lane.segments() >= segments),
            ("a segment being written", lane.begins_to_write()),
        ]
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_shards_survive_executors_and_drivers(seed, tmp_path, rabbitmq, make_lane):
    draw = random.Random(seed)
    with Broker(history=0, trace=0) as broker:
        lanes = [
            make_lane(name, url, shards=SHARDS, ids=30, maxMessagesPerTrigger=600, **{"amqp.heartbeat": 10})
            for name, url in brokers(broker, rabbitmq).items()
        ]
        for lane in lanes:
            for _ in range(LIVES):
                with (
                    Incarnation(tmp_path, [lane], master=MASTER) as pipeline,
                    lane.publishing(MESSAGES // LIVES),
                ):
                    for kill in [*[pipeline.kill_executor] * EXECUTORS, None]:
                        what, reached = moment(draw, lane)
                        pipeline.wait_until(reached, what)
                        if kill is not None:
                            kill(draw)
                        else:
                            pipeline.kill()
                        print(f"{lane.name}: killed {'all' if kill is None else 'an executor'} at {what}")
            with Incarnation(tmp_path, [lane], to_the_end=True, master=MASTER) as pipeline:
                pipeline.finish()
            outcome = lane.outcome()
            print(f"{lane.name}: {outcome}")
            assert outcome.published == MESSAGES
            assert outcome.lost == []
            assert outcome.strange == []
            assert outcome.twice == []
            assert lane.changed_on_replay() == []
            assert lane.ready() == 0
