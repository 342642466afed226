"""Many schedules of one test: a failure is found, repeated, shrunk and explained."""

from __future__ import annotations

import asyncio

import pytest

from fakeamqp import simulation
from fakeamqp.simulation.schedule import Schedule
from fakeamqp.simulation.shrinking import shrink


async def lost_update():
    """Two workers read, add one and write back; the second begins when the first is usually done."""
    stock = 0

    async def serve(reader, writer):
        nonlocal stock
        while line := await reader.readline():
            if line == b"get\n":
                writer.write(b"%d\n" % stock)
            else:
                stock = int(line)
                writer.write(b"ok\n")
        writer.close()

    async def worker(delay):
        await asyncio.sleep(delay)
        reader, writer = await asyncio.open_connection("localhost", 5000)
        writer.write(b"get\n")
        writer.write(b"%d\n" % (int(await reader.readline()) + 1))
        await reader.readline()
        writer.close()

    server = await asyncio.start_server(serve, "localhost", 5000)
    await asyncio.gather(worker(0), worker(0.05))
    server.close()
    assert stock == 2


async def harmless():
    await asyncio.gather(*(asyncio.sleep(0.01 * number) for number in range(5)))


def test_a_race_is_found_and_shrunk():
    simulation.run(lost_update())
    exploration = simulation.explore(lost_update, 200)
    failure = exploration.failure
    assert failure is not None
    assert exploration.schedules == failure.seed + 1 > 1
    assert len(failure.needed) == 1
    assert failure.minimal
    assert failure.parts_at == failure.needed[0]
    with pytest.raises(AssertionError):
        simulation.run(lost_update(), seed=failure.seed, quiet_end=True)
    with pytest.raises(AssertionError):
        simulation.run(
            lost_update(), schedule=Schedule(failure.seed, deviations=failure.deviations), quiet_end=True
        )


def test_the_failure_is_explained():
    failure = simulation.explore(lost_update, 200).failure
    assert failure is not None
    lines = failure.text.splitlines()
    assert lines[0] == f"seed {failure.seed} fails: AssertionError: assert 1 == 2"
    deviations = sum(1 for decision in failure.decisions if decision.chosen)
    assert lines[1] == (
        f"Of its {len(failure.decisions)} decisions, {deviations} deviate from first-come order. "
        f"In a run of {failure.shrunk_decisions}, one is enough to fail:"
    )
    again = Schedule(failure.seed, deviations=failure.deviations)
    with pytest.raises(AssertionError):
        simulation.run(lost_update(), schedule=again)
    assert failure.needed[0].number <= failure.shrunk_decisions == len(again.decisions)
    assert lines[2].strip() == str(failure.needed[0])
    assert lines[3] == "Without it the test passes: there it parts from a passing schedule."


def test_check_raises_failing_schedule_for_a_failure_found_by_explore():
    assert simulation.check(harmless, 20) == 20
    with pytest.raises(simulation.FailingSchedule, match="enough to fail") as failing:
        simulation.check(lost_update, 200)
    assert isinstance(failing.value.__cause__, AssertionError)
    assert failing.value.failure.seed > 0


def test_a_failure_in_first_come_order_is_no_matter_of_schedules():
    async def wrong():
        await asyncio.sleep(1)
        raise ZeroDivisionError("always")

    failure = simulation.explore(wrong, 10).failure
    assert failure is not None
    assert failure.seed == 0
    assert failure.needed == []
    assert failure.parts_at is None
    assert "fails in first-come order as well" in failure.text


def test_a_failure_that_needs_an_order_of_tasks_says_so():
    async def order_of_tasks():
        order = []

        async def note(name):
            order.append(name)

        await asyncio.gather(note("first"), note("second"))
        assert order == ["first", "second"]

    failure = simulation.explore(order_of_tasks, 200).failure
    assert failure is not None
    assert [decision.kind for decision in failure.needed] == ["task"]
    assert "note 2 goes on before" in failure.text
    assert "asyncio promises no order of tasks" in failure.text
    assert simulation.explore(order_of_tasks, 50, kinds=["delay", "pause"]).failure is None


def test_seeds_and_errors_can_be_chosen():
    async def fails():
        raise KeyError("no failure of this kind")

    with pytest.raises(KeyError):
        simulation.explore(fails, 3, errors=(AssertionError,))
    failure = simulation.explore(lost_update, [*range(1, 100)], shrink_runs=0).failure
    assert failure is not None
    assert not failure.minimal
    assert len(failure.needed) > 1
    assert simulation.explore(lost_update, [0]).failure is None


def test_shrinking_does_not_accept_a_failure_of_another_type():
    # A deviation makes the assertion fail; without it, another error comes up.
    async def two_errors():
        order = []

        async def note(name):
            order.append(name)

        await asyncio.gather(note(1), note(2))
        if order == [1, 2]:
            raise ValueError("in first-come order")
        raise AssertionError("otherwise")

    kinds = set()
    for seed in range(50):
        failure = simulation.explore(two_errors, [seed]).failure
        assert failure is not None
        kinds.add((type(failure.error), type(failure.shrunk_error), len(failure.needed)))
    assert kinds == {(ValueError, ValueError, 0), (AssertionError, AssertionError, 1)}


# -- shrinking by itself


def key(number: int) -> tuple[str, str, int]:
    return "delay", "a -> b", number


@pytest.mark.each_case
@pytest.mark.parametrize("needed", [{3}, {0, 99}, {10, 11, 12}, set(range(0, 100, 9)), set(range(20))])
def test_shrinking_finds_exactly_the_needed_deviations(needed):
    def fails(candidate):
        return candidate if needed <= {name[2] for name in candidate} else None

    best, runs = shrink(fails, {key(number): 5 for number in range(100)})
    assert {name[2] for name in best} == needed
    assert set(best.values()) == {1}
    assert runs <= 300


def test_shrinking_makes_choices_smaller():
    best, _ = shrink(
        lambda candidate: candidate if candidate.get(key(1), 0) >= 3 else None, {key(1): 8, key(2): 8}
    )
    assert best == {key(1): 3}


def test_shrinking_stops_at_the_largest_number_of_runs():
    runs = []

    def fails(candidate):
        runs.append(candidate)
        return candidate if len(candidate) > 50 else None

    best, count = shrink(fails, {key(number): 1 for number in range(100)}, most_runs=7)
    assert count == len(runs) == 7
    assert len(best) > 50


def test_shrinking_drops_deviations_that_no_longer_come_up():
    def fails(candidate):
        if key(1) not in candidate:
            return None
        return {name: chosen for name, chosen in candidate.items() if name[2] < 3}

    best, runs = shrink(fails, {key(number): 1 for number in range(100)})
    assert best == {key(1): 1}
    assert runs < 10
