"""The marker's `simulated` and `seeds`, and the fixture `amqp_simulation`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.plugin.conftest import WriteTests

RACE = """
    async def declare(broker):
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            await channel.declare_queue("orders")

    @pytest.mark.amqp(simulated=True, seeds={seeds})
    async def test_race(amqp_broker):
        order = []

        async def take(name, after):
            await asyncio.sleep(after)
            await declare(amqp_broker)
            order.append(name)

        await asyncio.gather(take("first", 0), take("second", 0.05))
        assert order == ["first", "second"]
"""


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_a_coroutine_runs_in_a_simulation(write_tests: WriteTests, mode: str) -> None:
    write_tests("""
    @pytest.mark.amqp(simulated=True)
    async def test_a_day(amqp_broker):
        loop = asyncio.get_running_loop()
        async with await aio_pika.connect_robust(amqp_broker.url, heartbeat=60) as connection:
            await asyncio.sleep(86_400)
            assert connection.connected.is_set()
        assert loop.time() >= 86_400

    async def test_the_fixture_is_enough(amqp_broker, amqp_simulation):
        assert asyncio.get_running_loop() is amqp_simulation
        await asyncio.sleep(86_400)
        assert amqp_simulation.schedule.seed == 0

    class TestOrders:
        @pytest.fixture
        async def numbers(self):
            self.opened = asyncio.get_running_loop()
            yield [1, 2]
            assert asyncio.get_running_loop() is self.opened

        @pytest.fixture
        async def total(self, numbers):
            await asyncio.sleep(3600)
            return sum(numbers)

        @pytest.mark.amqp(simulated=True, seeds=3)
        async def test_its_fixtures_do_too(self, total, amqp_simulation):
            assert self.opened is amqp_simulation
            assert total == 3 and amqp_simulation.time() >= 3600
    """).run(f"--asyncio-mode={mode}", "-W", "error", passed=3)


def test_the_connection_and_brokers_of_the_test_are_in_its_simulation(write_tests: WriteTests) -> None:
    write_tests("""
    @pytest.mark.amqp(simulated=True, seeds=5, checks=True)
    async def test_a_message(aio_pika_connection, amqp_url, amqp_broker):
        channel = await aio_pika_connection.channel()
        queue = await channel.declare_queue("orders")
        await channel.default_exchange.publish(aio_pika.Message(b"one"), "orders")
        await (await queue.get()).ack()

    @pytest.mark.amqp(simulated=True)
    async def test_two_brokers(amqp_broker, make_amqp_broker):
        async with make_amqp_broker() as other:
            async with await aio_pika.connect(other.url):
                assert len(other.connections) == 1
        assert not amqp_broker.connections

    @pytest.mark.amqp(simulated=True)
    async def test_a_virtual_clock(amqp_broker, amqp_clock):
        await amqp_clock.advance.aio(60)
    """).run("-W", "error", passed=3)


def test_a_race_is_found_shrunk_and_repeated(write_tests: WriteTests) -> None:
    result = write_tests(RACE.format(seeds=200)).run(
        failed=1,
        said=[
            "*assert order == [[]*",
            "*AMQP simulation*",
            "seed * fails: AssertionError: *",
            "Of its * decisions, * deviate from first-come order. * enough to fail:",
            "  decision *",
            "*the test passes: there it parts from a passing schedule.",
            "--amqp-seed=* repeats the run before its deviations were reduced to these.",
            "*AMQP timeline*",
        ],
    )
    seed = result.stdout.str().partition("--amqp-seed=")[2].split()[0]
    write_tests(RACE.format(seeds=200)).run(
        f"--amqp-seed={seed}",
        failed=1,
        said=[f"seed {seed}: of * decisions, * deviate from first-come order."],
    )
    write_tests(RACE.format(seeds=200)).run("--amqp-seed=0", passed=1)


def test_seeds_may_be_named_and_their_number_chosen(write_tests: WriteTests) -> None:
    source = """
    @pytest.mark.amqp(simulated=True, seeds={seeds})
    async def test_it(amqp_simulation):
        with open("seeds.txt", "a") as file:
            file.write(f"{{amqp_simulation.schedule.seed}} ")
    """
    for seeds, option, expected in (
        ([7, 9], (), "7 9 0 "),  # The run that is reported is in first-come order.
        (3, (), "0 1 2 0 "),
        (3, ("--amqp-schedules=2",), "0 1 0 "),
        (3, ("--amqp-seed=5",), "5 "),
    ):
        with open("seeds.txt", "w") as file:
            file.truncate()
        write_tests(source.format(seeds=seeds)).run(*option, passed=1)
        with open("seeds.txt") as file:
            assert file.read() == expected


def test_setup_only_runs_no_test(write_tests: WriteTests) -> None:
    result = write_tests("""
    @pytest.mark.amqp(simulated=True, seeds=3)
    async def test_it(amqp_broker):
        raise RuntimeError("it runs")
    """).run("--setup-only")
    assert result.ret == 0
    assert "it runs" not in result.stdout.str()


def test_a_test_that_runs_again_has_the_same_schedule(
    write_tests: WriteTests, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(
        """
        import copy
        import pytest
        from _pytest.runner import runtestprotocol

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(item, nextitem):
            runtestprotocol(item, log=False, nextitem=copy.copy(item))  # As plugins that run tests again do.
    """
    )
    write_tests("""
    decisions = []

    @pytest.mark.amqp(simulated=True)
    async def test_it(aio_pika_connection, amqp_simulation):
        await aio_pika_connection.channel()
        decisions.append(amqp_simulation.schedule.decisions)
        assert decisions[0] == decisions[-1]

    def test_it_ran_twice():
        assert len(decisions) == 2 and decisions[0]
    """).run("--amqp-seed=8", passed=2)


def test_other_plugins_see_one_run(write_tests: WriteTests) -> None:
    result = write_tests(RACE.format(seeds=200) + '        print("in order")\n').run(
        "-v", "-rA", "--setup-show"
    )
    assert result.stdout.str().count("test_race FAILED") <= 1
    result.assert_outcomes(failed=1)
    passing = write_tests("""
    @pytest.mark.amqp(simulated=True, seeds=20)
    async def test_it(amqp_broker, record_property):
        print("said once")
        record_property("name", "value")
    """).run(
        "-rP",
        "--junitxml=report.xml",
        "-o",
        "junit_family=xunit1",  # the other one has no properties of tests, and warns
        passed=1,
    )
    assert passing.stdout.str().count("said once") == 1
    with open("report.xml") as file:
        assert file.read().count('value="value"') == 1


@pytest.mark.parametrize("outcome", ["skip", "xfail"])
def test_skips_are_those_of_pytest(write_tests: WriteTests, outcome: str) -> None:
    result = write_tests(f"""
    @pytest.mark.amqp(simulated=True, seeds=20)
    async def test_it(amqp_broker):
        pytest.{outcome}("not here")
    """).run()
    result.assert_outcomes(**{"skip": {"skipped": 1}, "xfail": {"xfailed": 1}}[outcome])


def test_a_marked_xfail_fails_under_a_schedule(write_tests: WriteTests) -> None:
    source = RACE.format(seeds=200).replace(
        "    async def test_race", "    @pytest.mark.xfail\n    async def test_race"
    )
    write_tests(source).run(xfailed=1)


def test_simulated_failure_that_cannot_be_repeated_is_an_error(write_tests: WriteTests) -> None:
    write_tests("""
    runs = []

    @pytest.mark.amqp(simulated=True, seeds=20)
    async def test_it(amqp_broker):
        runs.append(1)
        assert len(runs) != 5
    """).run(
        passed=1,
        errors=1,
        said=["*the test fails with seed 4, and passes when the same schedule is repeated*"],
    )


def test_finding_or_unused_fault_fails_a_simulated_test(write_tests: WriteTests) -> None:
    write_tests("""
    @pytest.mark.amqp(simulated=True, seeds=3, checks="lost")
    async def test_lost(aio_pika_connection, amqp_broker):
        channel = await aio_pika_connection.channel()
        await channel.default_exchange.publish(aio_pika.Message(b""), "nowhere", mandatory=False)

    @pytest.mark.amqp(simulated=True, seeds=3)
    async def test_unused(aio_pika_connection, amqp_faults):
        amqp_faults.on("basic.publish").nack()

    @pytest.mark.amqp(simulated=True, seeds=3)
    async def test_used_at_last(aio_pika_connection, amqp_faults):
        amqp_faults.on("basic.publish").drop()
        channel = await aio_pika_connection.channel(publisher_confirms=False)
        await channel.default_exchange.publish(aio_pika.Message(b""), "orders")
    """).run(
        passed=1,
        failed=2,
        said=["FAILED *test_lost - CheckFailed: *", "FAILED *test_unused - UnusedFault: *"],
    )


def test_a_real_broker_is_not_simulated(write_tests: WriteTests) -> None:
    write_tests("""
    @pytest.mark.amqp(simulated=True, seeds=3)
    async def test_it(amqp_url): pass
    """).run("--amqp-real-url=amqp://127.0.0.1:1/", skipped=1)


def test_marker_sets_start_time_and_time_limit_of_the_simulation(write_tests: WriteTests) -> None:
    write_tests("""
    import datetime
    import time

    @pytest.mark.amqp(simulated=True, now=datetime.datetime(2030, 1, 1), patch_time=True)
    async def test_now(amqp_broker):
        assert datetime.datetime.now(datetime.timezone.utc).year == 2030
        await asyncio.sleep(86_400)
        assert datetime.datetime.now(datetime.timezone.utc).day == 2

    @pytest.mark.amqp(simulated=True, time_limit=60)
    async def test_limit(amqp_broker):
        await asyncio.sleep(61)
    """).run(passed=1, failed=1, said=["*TimeLimit*"])


@pytest.mark.parametrize("how", ["marker", "option", "ini"])
def test_runtime_asyncio_runs_the_broker_in_the_loop_of_the_test(write_tests: WriteTests, how: str) -> None:
    marker = {"marker": "(runtime='asyncio')"}.get(how, "()")
    options = {"option": ["--amqp-runtime=asyncio"], "ini": ["-o", "amqp_runtime=asyncio"]}.get(how, [])
    write_tests(f"""
    import threading

    pytestmark = pytest.mark.amqp{marker}

    @pytest.mark.asyncio
    async def test_function_loop(amqp_broker, aio_pika_connection):
        assert await asyncio.sleep(0) is None and len(amqp_broker.connections) == 1
        assert "fakeamqp" not in [thread.name for thread in threading.enumerate()]

    @pytest.mark.asyncio(loop_scope="module")
    async def test_module_loop(amqp_broker, aio_pika_connection):
        assert len(amqp_broker.connections) == 1
        assert "fakeamqp" not in [thread.name for thread in threading.enumerate()]

    @pytest.fixture
    def anyio_backend():
        return "asyncio"

    @pytest.mark.anyio
    async def test_on_anyio(amqp_broker, aio_pika_connection):
        assert "fakeamqp" not in [thread.name for thread in threading.enumerate()]
    """).run(*options, "-W", "error", passed=3)


def test_runtime_option_asyncio_does_not_apply_to_plain_functions(write_tests: WriteTests) -> None:
    write_tests("""
    def test_it(pika_channel, amqp_broker_session):
        pika_channel.queue_declare("q")

    def test_own(pika_channel, amqp_broker):
        pika_channel.queue_declare("q")
    """).run("--amqp-runtime=asyncio", passed=2)


def test_simulated_test_runs_once_with_the_option_compare(write_tests: WriteTests) -> None:
    write_tests("""
    @pytest.mark.amqp(simulated=True, seeds=3)
    async def test_it(amqp_broker): pass
    """).run("--amqp-compare=rabbitmq-3.13,rabbitmq-4.3", passed=1)


def test_a_seed_gives_the_same_trace_in_every_process(
    write_tests: WriteTests,
    monkeypatch: pytest.MonkeyPatch,
    pytester: pytest.Pytester,
) -> None:
    tests = write_tests(RACE.format(seeds=200))

    def trace(run: Callable[..., pytest.RunResult], seed: int, folder: str) -> bytes:
        options = (f"--amqp-seed={seed}", f"--amqp-trace={folder}", "--amqp-trace-formats=jsonl")
        assert run(*options).ret in (0, 1)
        [path] = (pytester.path / folder).iterdir()
        return path.read_bytes()

    monkeypatch.setenv("PYTHONHASHSEED", "1")
    first = trace(tests.run_apart, 8, "first")
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    assert trace(tests.run_apart, 8, "second") == first
    assert trace(tests.run, 9, "third") != first
    assert first.count(b"queue.declare") >= 2
