"""The clock of a broker on virtual time, without clients."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pika
import pytest

from compat_tests.time.conftest import NOON, SECONDS, UTC_NOON, deaths
from compat_tests.tools.matrix import rows
from fakeamqp import Broker
from fakeamqp.errors import ClockError, NothingPending
from fakeamqp.inspect import TimerView

DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def declare(broker: Broker, **queues: dict[str, object]) -> None:
    """Queues with their arguments."""
    definitions = [
        {"name": name, "vhost": "/", "durable": True, "arguments": arguments}
        for name, arguments in queues.items()
    ]
    broker.load_definitions({"queues": definitions})


@pytest.fixture
def ladder(broker: Broker) -> Broker:
    """A broker with three queues, from each of which messages go on to the next: 5 s, 60 s, 600 s."""
    declare(
        broker,
        first={"x-message-ttl": 5_000, **DEAD, "x-dead-letter-routing-key": "second"},
        second={"x-message-ttl": 60_000, **DEAD, "x-dead-letter-routing-key": "third"},
        third={"x-message-ttl": 600_000, **DEAD},
        dead={},
    )
    return broker


def test_virtual_time_starts_at_the_given_now_and_does_not_run(broker: Broker) -> None:
    clock = broker.clock
    assert clock.mode == "virtual"
    assert clock.now() == UTC_NOON
    assert clock.time() == UTC_NOON.timestamp()
    assert clock.elapsed == 0
    assert (clock.rate, clock.autojump, clock.heartbeats) == (0, None, "lenient")
    assert clock is broker.clock


def test_time_begins_at_the_present_unless_told() -> None:
    before = datetime.now(timezone.utc) - timedelta(milliseconds=1)
    clock = Broker(clock="virtual").clock
    began = clock.now()
    assert before <= began <= datetime.now(timezone.utc)
    assert clock.now() == began


@rows(
    "now",
    datetime(2024, 2, 29, 12),
    datetime(2024, 2, 29, 14, tzinfo=timezone(timedelta(hours=2))),
    1_709_208_000,
    1_709_208_000.0,
)
def test_now_may_be_aware_naive_or_a_number(now: datetime | float) -> None:
    assert Broker(clock="virtual", now=now).clock.time() == 1_709_208_000


@pytest.mark.parametrize("step", [61, 61.0, timedelta(minutes=1, seconds=1)])
def test_advance_moves_time(broker: Broker, step: float | timedelta) -> None:
    broker.clock.advance(step)
    assert broker.clock.elapsed == 61
    assert broker.clock.now() == datetime(2024, 2, 29, 12, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize("seconds", [-1, -1e-9, float("nan"), float("inf"), "60", None, True, timedelta(-1)])
def test_advance_by_an_invalid_number_of_seconds_raises_clock_error(broker: Broker, seconds: object) -> None:
    with pytest.raises(ClockError, match="0 or more"):
        broker.clock.advance(seconds)  # type: ignore[arg-type]
    assert broker.clock.elapsed == 0


def test_a_message_expires_when_its_time_has_come_and_not_before(broker: Broker) -> None:
    declare(broker, q={"x-message-ttl": 60_000})
    broker.publish(b"x", routing_key="q")
    broker.clock.advance(59.999)
    assert broker.queue("q").ready == 1
    broker.clock.advance(0.001)
    assert broker.queue("q").ready == 0


SMALLEST = pytest.param(0.001, 60_000, marks=pytest.mark.threads_only)  # A portal is slow.


@pytest.mark.parametrize(("step", "count"), [(0.1, 600), (0.3, 200), (1 / 3, 180), SMALLEST])
def test_many_small_steps_come_as_far_as_one(broker: Broker, step: float, count: int) -> None:
    declare(broker, q={"x-message-ttl": 60_000})
    broker.publish(b"x", routing_key="q")
    for _ in range(count - 1):
        broker.clock.advance(step)
    assert broker.queue("q").ready == 1
    broker.clock.advance(step)
    assert broker.queue("q").ready == 0


def test_each_timer_runs_at_its_own_instant(ladder: Broker) -> None:
    ladder.publish(b"x", routing_key="first")
    ladder.clock.advance(3600)
    [message] = ladder.queue("dead").messages
    assert deaths(message) == {"first": 5, "second": 65, "third": 665}
    assert ladder.clock.elapsed == 3600


def test_advance_stops_on_the_way_of_a_ladder(ladder: Broker) -> None:
    ladder.publish(b"x", routing_key="first")
    counts = []
    for step in (4.9, 0.1, 59.9, 0.1, 599.9, 0.1):
        ladder.clock.advance(step)
        counts.append([ladder.queue(name).ready for name in ("first", "second", "third", "dead")])
    assert counts == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def test_the_same_advance_gives_the_same_order_every_time() -> None:
    def run() -> list[bytes]:
        with Broker(clock="virtual", now=NOON, seed=1) as broker:
            declare(broker, dead={}, **{f"q{n}": {"x-message-ttl": 1000 + n % 3, **DEAD} for n in range(20)})
            for number in range(20):
                broker.publish(b"%d" % number, routing_key=f"q{number}")
            broker.clock.advance(60)
            return [message.body for message in broker.queue("dead").messages]

    orders = [run() for _ in range(3)]
    assert orders[0] == [b"%d" % n for n in sorted(range(20), key=lambda n: (n % 3, n))]
    assert orders[1:] == orders[:1] * 2


# --- to a point in time ------------------------------------------------------------------------------------


@rows(
    "when",
    datetime(2024, 2, 29, 12, 1),
    datetime(2024, 2, 29, 14, 1, tzinfo=timezone(timedelta(hours=2))),
    UTC_NOON.timestamp() + 60,
)
def test_advance_to_a_point_in_time(broker: Broker, when: datetime | float) -> None:
    declare(broker, q={"x-message-ttl": 60_000})
    broker.publish(b"x", routing_key="q")
    broker.clock.advance_to(when)
    assert broker.clock.elapsed == 60
    assert broker.queue("q").ready == 0


def test_advance_to_is_exact_wherever_time_began() -> None:
    for number in range(50):
        broker = Broker(clock="virtual", now=1_795_220_001.123456 + number * 0.7654321)
        declare(broker, q={"x-message-ttl": 60_123})
        broker.publish(b"x", routing_key="q")
        broker.clock.advance_to(broker.clock.now() + timedelta(seconds=60, microseconds=122_999))
        assert broker.queue("q").ready == 1
        broker.clock.advance_to(broker.clock.now() + timedelta(microseconds=1))
        assert broker.queue("q").ready == 0


def test_advance_to_now_is_allowed_and_to_the_past_is_not(broker: Broker) -> None:
    broker.clock.advance(60)
    broker.clock.advance_to(broker.clock.now())
    broker.clock.advance_to(broker.clock.time())
    with pytest.raises(ClockError, match=r"cannot go back, and it is 2024-02-29T12:01:00\+00:00 already"):
        broker.clock.advance_to(NOON)
    with pytest.raises(ClockError, match="when='noon' must be"):
        broker.clock.advance_to("noon")  # type: ignore[arg-type]
    assert broker.clock.elapsed == 60


# --- to the next timer -------------------------------------------------------------------------------------


def test_advance_to_next_goes_from_timer_to_timer(ladder: Broker) -> None:
    ladder.publish(b"x", routing_key="first")
    assert [ladder.clock.advance_to_next() for _ in range(3)] == [5, 60, 600]
    assert ladder.queue("dead").ready == 1


def test_advance_to_next_runs_all_timers_due_at_the_same_time(broker: Broker) -> None:
    declare(broker, a={"x-message-ttl": 5_000}, b={"x-message-ttl": 5_000}, c={"x-message-ttl": 5_001})
    for name in "abc":
        broker.publish(b"x", routing_key=name)
    assert broker.clock.advance_to_next() == 5
    assert [broker.queue(name).ready for name in "abc"] == [0, 0, 1]


def test_advance_to_next_without_timers_raises_an_error(broker: Broker) -> None:
    broker.clock.advance(12)
    with pytest.raises(NothingPending, match=r"no timer is pending.* moved by 12 s so far"):
        broker.clock.advance_to_next()
    assert broker.clock.elapsed == 12


# --- what is pending ---------------------------------------------------------------------------------------


def test_timers_are_shown_in_words_soonest_first(broker: Broker) -> None:
    declare(
        broker, late={"x-message-ttl": 60_000}, soon={"x-message-ttl": 5_000}, unused={"x-expires": 30_000}
    )
    broker.publish(b"x", routing_key="late")
    broker.publish(b"x", routing_key="soon")
    broker.clock.advance(0.8)
    shown = [str(timer) for timer in broker.clock.timers]
    assert [text.rpartition(" in ")[2] for text in shown] == ["4.2 s", "29.2 s", "59.2 s"]
    assert [text.split()[1] for text in shown] == ["'soon'", "'unused'", "'late'"]


def test_a_view_of_a_timer_is_a_value() -> None:
    view = TimerView(4.2, "q 'retry.5s' expires 3 messages")
    assert str(view) == "q 'retry.5s' expires 3 messages in 4.2 s"
    assert view == TimerView(4.2, "q 'retry.5s' expires 3 messages", housekeeping=False)
    with pytest.raises(AttributeError):
        view.due_in = 1  # type: ignore[misc]


@rows(
    "seconds, words",
    (0, "0"),
    (4.2, "4.2"),
    (0.1 + 0.2, "0.3"),
    (1800, "1800"),
    (0.0001, "0.001"),
    (59.9996, "60"),
    (3e8, "300000000"),
)
def test_seconds_are_shown_so_that_advancing_by_them_suffices(seconds: float, words: str) -> None:
    assert str(TimerView(seconds, "it happens")) == f"it happens in {words} s"


def test_the_clock_shows_its_state(broker: Broker) -> None:
    assert repr(broker.clock) == "<Clock virtual +0 s>"
    declare(broker, q={"x-expires": 60_000})
    broker.clock.advance(1.5)
    assert repr(broker.clock).startswith("<Clock virtual +1.5 s, next: q 'q' ")
    assert repr(broker.clock).endswith(" in 58.5 s>")


# --- errors of timers --------------------------------------------------------------------------------------


def test_failure_of_a_timer_is_recorded_and_later_timers_run() -> None:
    with Broker(clock="virtual", now=NOON) as broker:
        ran = []

        def fail() -> None:
            raise LookupError("broken timer")

        def set_timers(state):
            for delay in (1, 2, 3):
                state.timers.call_at(state.clock.now() + delay, fail)
                state.timers.call_at(state.clock.now() + delay, lambda: ran.append(state.clock.now()))

        broker._reader.read(set_timers)
        broker.clock.advance(10)
        assert ran == [1, 2, 3]
        assert broker.clock.elapsed == 10
        assert [str(error) for error in broker.admin.failures] == ["broken timer"] * 3


def test_a_timer_cannot_move_the_time_that_runs_it(broker: Broker) -> None:
    told = []

    def advance() -> None:
        with pytest.raises(ClockError, match="time is moving already") as caught:
            broker.clock.advance(1)
        told.append(caught.value)

    broker._reader.read(lambda state: state.timers.call_at(state.clock.now() + 1, advance))
    broker.clock.advance(10)
    assert len(told) == 1
    assert broker.clock.elapsed == 10


# --- life --------------------------------------------------------------------------------------------------


def test_time_can_be_moved_before_the_start_and_after_the_end() -> None:
    broker = Broker(clock="virtual", now=NOON)
    declare(broker, q={"x-message-ttl": 60_000})
    broker.publish(b"x", routing_key="q", delivery_mode=2)
    broker.clock.advance(30)
    assert broker.queue("q").ready == 1
    with broker:
        broker.clock.advance(15)
        assert broker.queue("q").ready == 1
    broker.clock.advance(14.9)
    assert broker.queue("q").ready == 1
    broker.clock.advance(0.1)
    assert broker.queue("q").ready == 0
    assert broker.clock.elapsed == 60


def test_virtual_time_and_ttl_continue_over_a_restart(broker: Broker) -> None:
    declare(broker, q={"x-message-ttl": 60_000})
    broker.publish(b"x", routing_key="q", delivery_mode=2)
    broker.clock.advance(30)
    broker.restart()
    assert broker.clock.elapsed == 30
    assert broker.queue("q").ready == 1
    broker.clock.advance(30)
    assert broker.queue("q").ready == 0


def test_reset_restores_start_time_and_clock_settings(broker: Broker) -> None:
    broker.clock.advance(3600)
    broker.clock.rate = 1e-9
    broker.clock.autojump = 1000.0
    broker.clock.heartbeats = "strict"
    broker.reset()
    clock = broker.clock
    assert (clock.rate, clock.autojump, clock.heartbeats) == (0, None, "lenient")
    assert (clock.elapsed, clock.now()) == (0, UTC_NOON)
    declare(broker, q={"x-message-ttl": 60_000})
    broker.publish(b"x", routing_key="q")
    clock.advance(59)
    assert broker.queue("q").ready == 1
    clock.advance(1)
    assert broker.queue("q").ready == 0
    assert clock.now() == datetime(2024, 2, 29, 12, 1, tzinfo=timezone.utc)


def test_reset_to_the_present_where_no_beginning_was_named() -> None:
    with Broker(clock="virtual") as broker:
        broker.clock.advance(1e9)
        before = datetime.now(timezone.utc) - timedelta(milliseconds=1)
        broker.reset()
        assert before <= broker.clock.now() <= datetime.now(timezone.utc)


def test_the_trace_shows_virtual_time(broker: Broker) -> None:
    broker.clock.advance(90)
    declare(broker, q={"x-message-ttl": 1000, **DEAD}, dead={})
    broker.publish(b"x", routing_key="q")
    broker.clock.advance(1)
    times = {round(event.time, 3) for event in broker.trace.events}
    assert times == {90.0, 91.0}


# --- passing by itself -------------------------------------------------------------------------------------


def test_at_a_rate_time_passes_by_itself(broker: Broker) -> None:
    declare(broker, q={"x-message-ttl": 3_600_000})
    broker.publish(b"x", routing_key="q")
    broker.clock.rate = 1e6
    assert broker.clock.rate == 1e6
    broker._reader.wait_for(lambda state: not state.virtual_host("/").queues["q"].ready, SECONDS)
    broker.clock.rate = 0
    stopped = broker.clock.elapsed
    assert stopped >= 3600
    assert broker.clock.elapsed == stopped


def test_a_rate_wakes_the_broker_that_sleeps(broker: Broker) -> None:
    broker.clock.rate = 1000
    ran = threading.Event()
    broker._reader.read(lambda state: state.timers.call_at(state.clock.now() + 20, ran.set))
    assert ran.wait(SECONDS)


def test_time_that_runs_can_be_advanced_too(broker: Broker) -> None:
    broker.clock.rate = 1
    broker.clock.advance(3600)
    first = broker.clock.elapsed
    assert 3600 <= first < 3600 + SECONDS
    assert broker.clock.elapsed > first


@pytest.mark.parametrize("rate", [-1, float("nan"), float("inf"), "fast", None])
def test_a_rate_must_be_a_number(broker: Broker, rate: object) -> None:
    with pytest.raises(ClockError, match=r"rate=.*0 or more"):
        broker.clock.rate = rate  # type: ignore[assignment]


@pytest.mark.parametrize("threshold", [0, 0.001])
def test_an_idle_broker_jumps_from_timer_to_timer(ladder: Broker, threshold: float) -> None:
    ladder.publish(b"x", routing_key="first")
    ladder.clock.autojump = threshold
    assert ladder.clock.autojump == threshold
    ladder.queue("dead").wait_for(ready=1, timeout=SECONDS)
    assert ladder.clock.elapsed == 665
    [message] = ladder.queue("dead").messages
    assert deaths(message) == {"first": 5, "second": 65, "third": 665}


def test_a_timer_set_later_is_jumped_to_as_well(ladder: Broker) -> None:
    ladder.clock.autojump = 0
    for count in (1, 2, 3):
        ladder.publish(b"x", routing_key="first")
        ladder.queue("dead").wait_for(ready=count, timeout=SECONDS)
        assert ladder.clock.elapsed == 665 * count


def test_without_timers_an_idle_broker_sleeps(broker: Broker) -> None:
    broker.clock.autojump = 0
    ran = threading.Event()
    broker._reader.read(lambda state: state.timers.call_at(state.clock.now() + 20, ran.set))
    assert ran.wait(SECONDS)
    engine = broker._engine
    broker.wait_until_idle()
    turns = engine.turns
    broker.publish(b"nowhere")
    broker.wait_until_idle()
    assert engine.turns - turns <= 2


@pytest.mark.threads_only
def test_time_stands_still_again_when_it_no_longer_jumps(broker: Broker) -> None:
    broker.clock.autojump = 0
    broker.clock.autojump = None
    declare(broker, q={"x-message-ttl": 1})
    broker.publish(b"x", routing_key="q")
    engine = broker._engine
    turns = engine.turns
    for _ in range(3):
        engine._loop.wake()
        assert engine.wait_until(lambda turns=turns: engine.turns > turns, SECONDS)
        turns = engine.turns
    assert broker.queue("q").ready == 1


@pytest.mark.parametrize("threshold", [-1, float("nan"), "soon"])
def test_a_threshold_must_be_a_number(broker: Broker, threshold: object) -> None:
    with pytest.raises(ClockError, match=r"autojump=.*0 or more"):
        broker.clock.autojump = threshold  # type: ignore[assignment]


def test_virtual_time_that_stands_still_costs_no_turns(broker: Broker) -> None:
    declare(broker, q={"x-message-ttl": 1})
    broker.publish(b"x", routing_key="q")
    broker.wait_until_idle()
    turns = broker._engine.turns
    for _ in range(100):
        assert broker.queue("q").ready == 1
    assert broker._engine.turns - turns <= 2  # The loop's first turns may come late.


# --- the other modes ---------------------------------------------------------------------------------------

MOVES = {
    "advance": lambda clock: clock.advance(1),
    "advance_to": lambda clock: clock.advance_to(4e9),
    "advance_to_next": lambda clock: clock.advance_to_next(),
    "rate": lambda clock: setattr(clock, "rate", 2),
    "autojump": lambda clock: setattr(clock, "autojump", 0),
}


@pytest.mark.parametrize("move", MOVES)
def test_real_time_cannot_be_moved(move: str) -> None:
    with pytest.raises(
        ClockError, match=rf"clock\.{move}\b.*uses real time; create the broker with clock='virtual'"
    ):
        MOVES[move](Broker().clock)


@pytest.mark.parametrize("move", MOVES)
def test_the_wall_clock_is_moved_elsewhere(move: str) -> None:
    with pytest.raises(ClockError, match=rf"clock\.{move}\b.*freezegun's tick\(\) or move_to\(\)"):
        MOVES[move](Broker(clock="wall").clock)


@pytest.mark.threads_only  # The clock of a loop stands still until the broker starts in one.
def test_real_clock_shows_time_and_timers_and_has_no_elapsed() -> None:
    broker = Broker()
    clock = broker.clock
    before = datetime.now(timezone.utc) - timedelta(milliseconds=1)
    assert before <= clock.now() <= datetime.now(timezone.utc)
    assert (clock.mode, clock.rate, clock.autojump, clock.heartbeats) == ("real", 1, None, "strict")
    declare(broker, q={"x-expires": 60_000})
    [timer] = clock.timers
    assert 59 < timer.due_in <= 60
    assert "'q'" in timer.words
    assert repr(clock).startswith("<Clock real, next: q 'q' ")
    with pytest.raises(ClockError, match="no meaning on real time"):
        clock.elapsed  # noqa: B018
    with pytest.raises(ClockError, match="no meaning on real time"):
        clock.heartbeats = "lenient"


@pytest.mark.parametrize("mode", ["virtual", "wall"])
def test_heartbeats_are_lenient_or_strict(mode: str) -> None:
    clock = Broker(clock=mode).clock  # type: ignore[arg-type]
    clock.heartbeats = "strict"
    assert clock.heartbeats == "strict"
    clock.heartbeats = "lenient"
    assert clock.heartbeats == "lenient"
    with pytest.raises(ClockError, match="must be 'lenient' or 'strict'"):
        clock.heartbeats = "srtict"  # type: ignore[assignment]


def test_advance_with_invalid_heartbeats_argument_does_not_move_time(broker: Broker) -> None:
    with pytest.raises(ClockError, match="must be 'lenient' or 'strict'"):
        broker.clock.advance(60, heartbeats="srtict")  # type: ignore[arg-type]
    assert broker.clock.elapsed == 0


@pytest.mark.parametrize("header", [b"", b"AMQP\0\0\x09\x01"], ids=["no-header", "no-start-ok"])
def test_unfinished_handshake_ends_after_an_advance_of_10_seconds(header: bytes) -> None:
    with Broker(clock="virtual") as broker, broker.connect() as client:
        client.sendall(header)
        broker.clock.advance(9)
        assert len(broker.connections) == bool(header)
        broker.clock.advance(1)
        assert broker.connections == ()
        client.settimeout(5)
        while client.recv(4096):
            pass  # Until the end of the transport.


def test_client_in_the_middle_of_its_handshake_survives_an_advance() -> None:
    with Broker(clock="virtual") as broker, ThreadPoolExecutor(1) as elsewhere:
        for _ in range(20):
            begun = broker._reader.read(lambda state: len(state.connections))
            connecting = elsewhere.submit(pika.BlockingConnection, pika.URLParameters(broker.url))
            broker._reader.wait_for(lambda state, begun=begun: len(state.connections) > begun)
            broker.clock.advance(3600)
            connecting.result(10).close()


def test_time_that_passes_by_itself_ends_no_handshake() -> None:
    with Broker(clock="virtual") as broker, broker.connect() as client:
        client.sendall(b"AMQP\0\0\x09\x01")
        broker._reader.wait_for(lambda state: state.connections)
        broker.clock.rate = 1_000_000
        broker._reader.wait_for(lambda state: state.clock.now() > 100)
        broker.clock.rate = 0
        assert len(broker.connections) == 1
