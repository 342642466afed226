"""Calls of a test that take long: other clients are served meanwhile, and nothing else is different.

A slice has one step here. A client asks in the first step of a call and has its answer before the last one.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random
from select import select
from typing import Any

import pytest

from compat_tests.benchmarks.load import Address
from compat_tests.benchmarks.stalls import PROBED, QUEUE, Talker
from fakeamqp import Broker
from fakeamqp.model.definitions import DefinitionsError, _Loading
from fakeamqp.model.exchanges import Exchange
from fakeamqp.model.history import MessageOutcomes
from fakeamqp.model.operations import STEP
from fakeamqp.model.policies import Policies
from fakeamqp.model.queues.classic import ClassicQueue
from fakeamqp.model.virtual_host.queues import QueueRegister
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.runtime import turns
from fakeamqp.trace.events import ModelEvent

OPTIONS = {"clock": "virtual"}

pytestmark = pytest.mark.threads_only

MANY = 3 * STEP
FEW = 8
Call = Callable[[], object]


@pytest.fixture(autouse=True)
def one_step_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_SLICE_SECONDS", 0.0)


@pytest.fixture
def other(broker: Broker) -> Iterator[Talker]:
    talker = Talker(Address("broker", broker.host, broker.port))
    talker.declare(PROBED)
    yield talker
    talker.close()


def ask(broker: Broker, talker: Talker) -> None:
    """Inside a call: ask, and return once the request has arrived."""
    talker.say(m.QueueDeclare(queue=PROBED, passive=True))
    running = broker._engine._loop
    while running is not None and not running.readable():
        pass


def answered(talker: Talker) -> None:
    talker.await_method(m.QueueDeclareOk)


def timers(broker: Broker, callbacks: dict[float, Call]) -> None:
    """Timers of the broker's clock, in seconds from now."""
    state = broker._state
    for delay, callback in callbacks.items():
        state.timers.call_at(state.clock.now() + delay, callback, "a timer of the test")


# --- clients are answered while a call is under way ---------------------------------------------------


def queues(number: int, **arguments: Any) -> list[dict[str, Any]]:
    return [{"name": f"q{each}", "vhost": "/", "arguments": arguments} for each in range(number)]


def bindings(number: int) -> list[dict[str, Any]]:
    return [
        {"source": "amq.topic", "destination": "q0", "vhost": "/", "routing_key": f"{each}.a"}
        for each in range(number)
    ]


def load(broker: Broker) -> Call:
    return lambda: broker.load_definitions({"queues": queues(FEW)})


def load_policy(broker: Broker) -> Call:
    broker.load_definitions({"queues": queues(FEW)})
    policy = {"vhost": "/", "name": "p", "pattern": "^q", "definition": {"max-length": 5}}
    return lambda: broker.load_definitions({"policies": [policy]})


def set_policy(broker: Broker) -> Call:
    broker.load_definitions({"queues": queues(FEW)})
    return lambda: broker.admin.set_policy("p", "^q", {"max-length": 5})


def clear_policy(broker: Broker) -> Call:
    broker.load_definitions({"queues": queues(FEW)})
    broker.admin.set_policy("p", "^q", {"max-length": 5}, operator=True)
    return lambda: broker.admin.clear_policy("p", operator=True)


def remove_virtual_host(broker: Broker) -> Call:
    broker.admin.add_virtual_host("v")
    broker.load_definitions({"queues": [{**each, "vhost": "v"} for each in queues(FEW)]})
    return lambda: broker.admin.remove_virtual_host("v")


def delete(broker: Broker) -> Call:
    broker.load_definitions({"queues": queues(1), "bindings": bindings(MANY)})
    return lambda: broker.queue("q0").delete()


def cancel_consumers(broker: Broker) -> Call:
    talker = Talker(Address("broker", broker.host, broker.port))
    talker.declare(QUEUE)
    talker.say(*(m.BasicConsume(queue=QUEUE, consumer_tag=str(tag), no_wait=True) for tag in range(MANY)))
    talker.count(QUEUE)

    def cancel() -> None:
        assert broker.queue(QUEUE).cancel_consumers() == MANY
        assert broker.queue(QUEUE).consumers == ()
        talker.close()
        broker.wait_for(lambda: len(broker.connections) == 1)  # That of the other client.

    return cancel


def advance(broker: Broker) -> Call:
    broker.load_definitions({"queues": queues(FEW, **{"x-expires": 1000})})
    return lambda: broker.clock.advance(2)


def expire(broker: Broker) -> Call:
    broker.load_definitions({"queues": queues(1)})
    for _ in range(MANY):
        broker.publish(b"", routing_key="q0", expiration="1000")
    return lambda: broker.clock.advance(2)


CALLS: dict[Callable[[Broker], Call], tuple[type, str, int]] = {
    load: (_Loading, "_queue", FEW),
    load_policy: (Policies, "adopt_queue", FEW),
    set_policy: (Policies, "adopt_queue", FEW),
    clear_policy: (Policies, "adopt_queue", FEW),
    remove_virtual_host: (QueueRegister, "remove", FEW),
    delete: (Exchange, "drop", MANY),
    cancel_consumers: (ClassicQueue, "unsubscribe", MANY),
    advance: (QueueRegister, "remove", FEW),
    expire: (MessageOutcomes, "dropped", MANY),
}
"""What each call does to every object, and how often."""

every_call = pytest.mark.parametrize("prepare", CALLS, ids=lambda each: each.__name__)


def during(monkeypatch: pytest.MonkeyPatch, prepare: Callable[[Broker], Call], acts: dict[int, Call]) -> None:
    """Do something before the n-th object of a call."""
    owner, name, _ = CALLS[prepare]
    original = getattr(owner, name)
    done = 0

    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal done
        acts.get(done, int)()
        done += 1
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, counting)


@every_call
def test_client_is_answered_during_a_long_call(
    broker: Broker, other: Talker, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[Broker], Call]
) -> None:
    call = prepare(broker)
    last = CALLS[prepare][2] - 1
    happened: list[str] = []

    def has_its_answer() -> None:
        answered(other)
        happened.append("answered")

    during(monkeypatch, prepare, {0: partial(ask, broker, other), last: has_its_answer})
    call()
    assert happened == ["answered"]


@every_call
def test_client_can_connect_during_a_long_call(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[Broker], Call]
) -> None:
    call = prepare(broker)
    last = CALLS[prepare][2] - 1
    newcomers: list[Talker] = []
    thread = threading.Thread(
        target=lambda: newcomers.append(Talker(Address("broker", broker.host, broker.port)))
    )

    def connects() -> None:
        thread.start()
        # The handshake needs some turns: the call waits for peers, as if it had many more objects.
        while thread.is_alive():
            with broker._engine.in_slices() as between:
                between()

    during(monkeypatch, prepare, {last: connects})
    call()
    assert len(broker.connections) == 1
    newcomers[0].close()


@every_call
def test_other_threads_see_a_long_call_only_after_its_end(
    broker: Broker, other: Talker, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[Broker], Call]
) -> None:
    call = prepare(broker)
    last = CALLS[prepare][2] - 1
    ended: list[bool] = []
    seen: list[bool] = []

    def look() -> bool:
        seen.append(bool(ended))
        return bool(ended)

    def reads() -> None:
        broker._reader.read(lambda _: look())
        broker.wait_for(look, timeout=20)

    threads = [threading.Thread(target=reads) for _ in range(3)]

    def begins() -> None:
        for thread in threads:
            thread.start()
        ask(broker, other)

    def ends() -> None:
        answered(other)
        ended.append(True)

    during(monkeypatch, prepare, {0: begins, last: ends})
    call()
    for thread in threads:
        thread.join()
    assert set(seen) == {True}


def test_predicate_of_a_wait_never_sees_a_part_of_a_call(broker: Broker, other: Talker) -> None:
    fired: list[float] = []
    seen: set[int] = set()

    def look() -> bool:
        seen.add(len(fired))
        return len(fired) == FEW

    waiting = threading.Thread(target=lambda: broker.wait_for(look, timeout=20))
    waiting.start()
    while not seen:
        pass

    def fires(number: int) -> None:
        fired.append(number)
        if number % 2:
            ask(broker, other)
        else:
            answered(other)

    timers(broker, {number: partial(fires, number) for number in range(1, FEW + 1)})
    broker.clock.advance(FEW)
    waiting.join()
    assert seen == {0, FEW}


def test_failed_call_raises_its_error_and_keeps_earlier_entities(
    broker: Broker, other: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    during(monkeypatch, load, {0: partial(ask, broker, other), 5: partial(answered, other)})
    wrong = [*queues(6), {"name": "wrong", "vhost": "/", "arguments": {"x-max-length": "many"}}, *queues(1)]
    with pytest.raises(DefinitionsError, match="wrong"):
        broker.load_definitions({"queues": wrong})
    assert broker.queue("q5").exists
    assert not broker._state.operations.pauses


def test_definitions_are_checked_before_any_entity_is_created(broker: Broker, other: Talker) -> None:
    other.say(m.QueueDeclare(queue=PROBED, passive=True))
    with pytest.raises(DefinitionsError, match="nmae"):
        broker.load_definitions({"queues": [*queues(FEW), {"nmae": "x"}]})
    assert not broker.queue("q0").exists


def test_broker_can_be_stopped_during_a_long_call(
    broker: Broker, other: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = threading.Thread(target=broker._engine.stop)
    call = load(broker)

    def stops() -> None:
        thread.start()
        ask(broker, other)

    during(monkeypatch, load, {2: stops})
    call()
    thread.join()
    assert not broker.running
    assert len(broker.queues) == FEW + 1


def test_broker_works_after_ctrl_c_interrupts_a_call(broker: Broker, other: Talker) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    fired: list[int] = []
    timers(broker, {1: partial(ask, broker, other), 2: interrupted, 3: partial(fired.append, 3)})
    before = broker.clock.time()
    with pytest.raises(KeyboardInterrupt):
        broker.clock.advance(5)
    answered(other)
    assert broker.clock.time() == before + 2
    broker.clock.advance(1)
    assert fired == [3]
    assert other.count(PROBED) == 0


# --- calls within calls -------------------------------------------------------------------------------


def test_call_inside_another_call_keeps_the_lock(
    broker: Broker, other: Talker, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_last: list[list[Any]] = []

    def loads() -> None:
        ask(broker, other)
        broker.load_definitions({"queues": queues(FEW)})

    last = CALLS[load][2] - 1
    during(monkeypatch, load, {last: lambda: at_last.append(select([other.socket], [], [], 0)[0])})
    timers(broker, {1: loads, 2: partial(answered, other)})
    broker.clock.advance(3)
    assert at_last == [[]]
    assert broker.queue("q0").exists


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("clock", ["real", "virtual"])
def test_restart_inside_a_call_or_turn_loses_no_message(clock: Any, crash: bool) -> None:
    with Broker(seed=1, clock=clock) as broker:
        consumer, other = (Talker(Address("broker", broker.host, broker.port)) for _ in range(2))
        other.declare(PROBED)
        consumer.declare(QUEUE)
        for number in range(MANY):
            broker.publish(b"%d" % number, routing_key=QUEUE, delivery_mode=2)
        consumer.consume()
        broker.queue(QUEUE).wait_for(unacked=MANY)
        restarted = threading.Event()

        def restarts() -> None:
            if clock == "virtual":
                ask(broker, other)
            broker.restart(crash=crash)
            restarted.set()

        timers(broker, {0: restarts})
        if clock == "virtual":
            broker.clock.advance(1)
        broker._engine._loop.wake()
        assert restarted.wait(20)
        found = [each.body for each in broker.queue(QUEUE).messages]
        assert found == [b"%d" % each for each in range(MANY)]
        assert broker.admin.failures == ()
        consumer.close()
        other.close()


# --- time ---------------------------------------------------------------------------------------------


def test_client_input_between_two_timers_is_processed_at_the_earlier_time(
    broker: Broker, other: Talker
) -> None:
    publish = method_frame(1, m.BasicPublish(routing_key=PROBED).encode()) + b"".join(
        content_frames(1, 60, BasicProperties(expiration="1500").encode(), b"x", 131_064)
    )
    queue = broker._state.virtual_host("/").queues[PROBED]
    ready: list[int] = []

    def publishes() -> None:
        other.socket.sendall(publish)
        ask(broker, other)

    # The publish is handled at 1.0 as long as a timer that is due then has the answer.
    state = broker._state
    now = state.clock.now()
    for callback in (publishes, int, partial(answered, other)):
        state.timers.call_at(now + 1, callback, "a timer of the test")
    timers(broker, {2.4: lambda: ready.append(len(queue.ready)), 2.6: lambda: ready.append(len(queue.ready))})
    broker.clock.advance(10)
    assert ready == [1, 0]


def test_trace_times_do_not_decrease_during_a_long_call(broker: Broker, other: Talker) -> None:
    for number in range(1, FEW + 1):
        timers(broker, {number: partial(ask, broker, other), number + 0.5: partial(answered, other)})
    broker.clock.advance(FEW + 1)
    times = [event.time for event in broker.trace.events]
    assert times == sorted(times)
    assert broker.clock.elapsed == FEW + 1


def test_long_call_without_clients_keeps_the_lock(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    handed_over: list[object] = []
    monkeypatch.setattr("fakeamqp.runtime.thread.lock.Slices._hand_over", handed_over.append)
    for prepare in (load, set_policy, remove_virtual_host, advance, expire):
        prepare(broker)()
        broker.reset()
    assert handed_over == []


# --- the outcome is the same --------------------------------------------------------------------------


@dataclass
class Scenario:
    """Random calls, with a client that asks all the time or without."""

    seed: int
    sliced: bool
    asked: int = 0
    happened: list[Any] = field(default_factory=list)

    def run(self) -> Any:
        random = Random(self.seed)
        with Broker(seed=self.seed, clock="virtual", now=1_000_000, trace=1_000_000) as broker:
            talker = Talker(Address("broker", broker.host, broker.port))
            talker.declare(PROBED)
            stopped = threading.Event()
            asking = threading.Thread(target=self.ask_on, args=(talker, stopped))
            if self.sliced:
                asking.start()
            try:
                for _ in range(20):
                    self.act(broker, random)
                    self.happened.append(self.state(broker))
            finally:
                stopped.set()
                if self.sliced:
                    asking.join()
            events = [
                (event.time, str(event))
                for event in broker.trace.events
                if isinstance(event, ModelEvent) and PROBED not in str(event)
            ]
            assert broker.admin.failures == ()
            talker.close()
        return self.happened, events

    def ask_on(self, talker: Talker, stopped: threading.Event) -> None:
        while not stopped.is_set():
            talker.count(PROBED)
            self.asked += 1

    def act(self, broker: Broker, random: Random) -> None:
        kind = random.choice(("load", "publish", "policy", "clear", "advance", "delete", "purge"))
        name = f"q{random.randrange(6)}"
        if kind == "load":
            arguments = {
                "x-message-ttl": random.randrange(1, 5000),
                "x-expires": random.randrange(1000, 20_000),
                "x-max-length": random.randrange(1000),
            }
            kept = dict(random.sample(sorted(arguments.items()), random.randrange(4)))
            if random.random() < 0.5:
                kept["x-dead-letter-exchange"] = "amq.topic"
                kept["x-dead-letter-routing-key"] = f"{random.randrange(300)}.a"
            new = [each for each in queues(20, **kept) if not broker.queue(each["name"]).exists]
            bound = [each for each in bindings(300) if random.random() < 0.9]
            missing = "q0" not in {each["name"] for each in new} and not broker.queue("q0").exists
            broker.load_definitions({"queues": new, "bindings": [] if missing else bound})
        elif kind == "publish":
            for number in range(random.randrange(2 * STEP)):
                broker.publish(b"%d" % number, routing_key=name, expiration=str(random.randrange(1, 9000)))
        elif kind == "policy":
            limit = {"max-length": random.randrange(300)}
            broker.admin.set_policy("p", f"q[{random.randrange(9)}-9]", limit, priority=random.randrange(3))
        elif kind == "clear":
            broker.admin.set_policy("p", "^none", {"max-length": 1})
            broker.admin.clear_policy("p")
        elif kind == "advance":
            broker.clock.advance(random.randrange(8000) / 1000)
        elif broker.queue(name).exists:
            self.happened.append(getattr(broker.queue(name), kind)())

    @staticmethod
    def state(broker: Broker) -> Any:
        bodies = {
            each.name: [message.body for message in broker.queue(each.name).messages]
            for each in broker.queues
        }
        return json.dumps(broker.definitions(), default=str), bodies, broker.clock.elapsed


@pytest.mark.parametrize("seed", range(6))
def test_the_outcome_does_not_depend_on_slices(seed: int) -> None:
    sliced = Scenario(seed, sliced=True)
    assert sliced.run() == Scenario(seed, sliced=False).run()
    assert sliced.asked
