"""`kill -9` at the points that random ones hardly hit."""

from __future__ import annotations

import pytest

from compat_tests.crashes.extent import AT_LENGTH, only_at_length
from compat_tests.crashes.lanes import Lane
from compat_tests.crashes.processes import Incarnation
from fakeamqp import Broker

pytestmark = pytest.mark.timeout(3600)

BATCH = 700
# Where the competitor is to find something, the consumer must not have everything in its spool.
TIGHT = {"maxMessagesPerTrigger": BATCH, "spoolMaxBytes": "256k", "spoolFlushRows": 100, "prefetch": 200}


class Killed:
    """The lanes of a pipeline that was killed once, and then came to its end."""

    def __init__(self, folder, broker, rabbitmq):
        self.lanes = {}
        self._counts = {}
        self._folder = folder
        self._broker = broker
        for name, url in {"fakeamqp": broker.url, "rabbitmq": rabbitmq}.items():
            if url is not None:
                self._add(name, url, 5000, hold_after=2, **TIGHT)
                self._add(f"{name}-competitor", url, 5000, hold_after=2, **TIGHT)
        self._add("unacked", broker.url, 2500, maxMessagesPerTrigger=BATCH)
        self._add("unacked-shared-ids", broker.url, 2500, ids=7, maxMessagesPerTrigger=BATCH)
        if AT_LENGTH:
            self._add("unacked-not-deduped", broker.url, 2500, maxMessagesPerTrigger=BATCH, dedupe="none")
        self.spooled = {}

    def _add(self, name, url, count, hold_after=None, ids=None, **options):
        said = {key: str(value) for key, value in options.items()}
        self.lanes[name] = Lane(name, url, self._folder / name, said, hold_after, ids=ids)
        self._counts[name] = count

    def run(self):
        held = [lane for lane in self.lanes.values() if lane.hold_after is not None]
        unacked = [lane for name, lane in self.lanes.items() if name.startswith("unacked")]
        lanes = list(self.lanes.values())
        # As if the process had ended between the disk and the ack, of everything that it has on the disk.
        rules = [self._broker.faults.on("basic.ack", queue=lane.name).drop() for lane in unacked]
        with Incarnation(self._folder, lanes) as pipeline:
            pipeline.publish_when_it_consumes(lanes, self._counts)
            pipeline.wait_until(lambda: all(lane.held() for lane in held), "the sink has batch 2")
            pipeline.wait_until(
                lambda: all(lane.committed() >= 2 for lane in unacked), "two batches without acks"
            )
            assert all(rule.hits for rule in rules)
        for rule in rules:
            rule.remove()
        self.spooled = {lane.name: lane.spooled() for lane in lanes}
        for lane in lanes:
            lane.hold_after = None
            if lane.name.endswith("-competitor"):
                lane.take(1400)
        with Incarnation(self._folder, lanes, to_the_end=True) as pipeline:
            pipeline.finish()
        for lane in lanes:
            print(f"{lane.name}: {lane.outcome()}")


@pytest.fixture(scope="module")
def killed(tmp_path_factory, rabbitmq):
    with Broker(history=0, trace=0) as broker:
        killed = Killed(tmp_path_factory.mktemp("killed"), broker, rabbitmq)
        killed.run()
        yield killed


@pytest.mark.parametrize("competitor", ["", "-competitor"])
@pytest.mark.parametrize("broker", ["fakeamqp", "rabbitmq"])
def test_kill_between_sink_and_commit_log_loses_and_duplicates_no_message(killed, broker, competitor):
    lane = killed.lanes.get(broker + competitor)
    if lane is None:
        pytest.skip("RabbitMQ 4.3 cannot be had")
    outcome = lane.outcome()
    assert (outcome.published, outcome.taken) == (5000, 1400 if competitor else 0)
    assert outcome.lost == []
    assert outcome.twice == []
    assert outcome.strange == []
    assert outcome.replayed > 0
    assert lane.changed_on_replay() == []
    assert lane.ready() == 0


@pytest.mark.parametrize("lane", ["unacked", "unacked-shared-ids"])
def test_kill_between_spool_write_and_ack_loses_and_duplicates_no_message(killed, lane):
    outcome = killed.lanes[lane].outcome()
    assert outcome.lost == []
    assert outcome.twice == []


@only_at_length
def test_unacknowledged_messages_without_message_ids_are_duplicated_after_crash(killed):
    lane = killed.lanes["unacked-not-deduped"]
    outcome = lane.outcome()
    assert outcome.lost == []
    assert sorted(outcome.twice) == sorted(lane.published[: killed.spooled[lane.name]])
