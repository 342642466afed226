"""The marker's `simulated` and `seeds`, and the fixture `amqp_simulation`."""

from __future__ import annotations

import pytest

from compat_tests.plugin.conftest import RunTests

RACE = """
    import asyncio
    import aio_pika
    import pytest

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
def test_a_coroutine_runs_in_a_simulation(run_tests: RunTests, mode: str) -> None:
    result = run_tests(
        """
    import asyncio
    import aio_pika
    import pytest

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
    """,
        f"--asyncio-mode={mode}",
        "-W",
        "error",
    )
    result.assert_outcomes(passed=3)


def test_the_connection_and_brokers_of_the_test_are_in_its_simulation(run_tests: RunTests) -> None:
    result = run_tests(
        """
    import asyncio
    import aio_pika
    import pytest

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
        await amqp_clock.advance_async(60)
    """,
        "-W",
        "error",
    )
    result.assert_outcomes(passed=3)


def test_a_race_is_found_shrunk_and_repeated(run_tests: RunTests) -> None:
    result = run_tests(RACE.format(seeds=200))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*assert order == [[]*",
            "*AMQP simulation*",
            "seed * fails: AssertionError: *",
            "Of its * decisions, * deviate from first-come order. * enough to fail:",
            "  decision *",
            "*the test passes: there it parts from a passing schedule.",
            "--amqp-seed=* repeats the run before its deviations were reduced to these.",
            "*AMQP timeline*",
        ]
    )
    seed = result.stdout.str().partition("--amqp-seed=")[2].split()[0]
    again = run_tests(RACE.format(seeds=200), f"--amqp-seed={seed}")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines([f"seed {seed}: of * decisions, * deviate from first-come order."])
    run_tests(RACE.format(seeds=200), "--amqp-seed=0").assert_outcomes(passed=1)


def test_seeds_may_be_named_and_their_number_chosen(run_tests: RunTests) -> None:
    source = """
    import pytest

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
        run_tests(source.format(seeds=seeds), *option).assert_outcomes(passed=1)
        with open("seeds.txt") as file:
            assert file.read() == expected


def test_setup_only_runs_no_test(run_tests: RunTests) -> None:
    result = run_tests(
        """
    import pytest

    @pytest.mark.amqp(simulated=True, seeds=3)
    async def test_it(amqp_broker):
        raise RuntimeError("it runs")
    """,
        "--setup-only",
    )
    assert result.ret == 0
    assert "it runs" not in result.stdout.str()


def test_a_test_that_runs_again_has_the_same_schedule(run_tests: RunTests, pytester: pytest.Pytester) -> None:
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
    result = run_tests(
        """
    import pytest

    decisions = []

    @pytest.mark.amqp(simulated=True)
    async def test_it(aio_pika_connection, amqp_simulation):
        await aio_pika_connection.channel()
        decisions.append(amqp_simulation.schedule.decisions)
        assert decisions[0] == decisions[-1]

    def test_it_ran_twice():
        assert len(decisions) == 2 and decisions[0]
    """,
        "--amqp-seed=8",
    )
    result.assert_outcomes(passed=2)


def test_other_plugins_see_one_run(run_tests: RunTests) -> None:
    result = run_tests(RACE.format(seeds=200) + '        print("in order")\n', "-v", "-rA", "--setup-show")
    assert result.stdout.str().count("test_race FAILED") <= 1
    result.assert_outcomes(failed=1)
    passing = run_tests(
        """
    import pytest

    @pytest.mark.amqp(simulated=True, seeds=20)
    async def test_it(amqp_broker, record_property):
        print("said once")
        record_property("name", "value")
    """,
        "-rP",
        "--junitxml=report.xml",
        "-o",
        "junit_family=xunit1",  # the other one has no properties of tests, and warns
    )
    passing.assert_outcomes(passed=1)
    assert passing.stdout.str().count("said once") == 1
    with open("report.xml") as file:
        assert file.read().count('value="value"') == 1


@pytest.mark.parametrize("outcome", ["skip", "xfail"])
def test_skips_are_those_of_pytest(run_tests: RunTests, outcome: str) -> None:
    result = run_tests(
        f"""
    import pytest

    @pytest.mark.amqp(simulated=True, seeds=20)
    async def test_it(amqp_broker):
        pytest.{outcome}("not here")
    """
    )
    result.assert_outcomes(**{"skip": {"skipped": 1}, "xfail": {"xfailed": 1}}[outcome])


def test_a_marked_xfail_fails_under_a_schedule(run_tests: RunTests) -> None:
    source = RACE.format(seeds=200).replace(
        "    async def test_race", "    @pytest.mark.xfail\n    async def test_race"
    )
    run_tests(source).assert_outcomes(xfailed=1)


def test_simulated_failure_that_cannot_be_repeated_is_an_error(run_tests: RunTests) -> None:
    result = run_tests(
        """
    import pytest

    runs = []

    @pytest.mark.amqp(simulated=True, seeds=20)
    async def test_it(amqp_broker):
        runs.append(1)
        assert len(runs) != 5
    """
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*the test fails with seed 4, and passes when the same schedule is repeated*"]
    )


def test_finding_or_unused_fault_fails_a_simulated_test(run_tests: RunTests) -> None:
    result = run_tests(
        """
    import asyncio
    import aio_pika
    import pytest

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
    """
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        ["FAILED *test_lost - CheckFailed: *", "FAILED *test_unused - UnusedFault: *"]
    )


@pytest.mark.parametrize(
    ("marker", "test", "said"),
    [
        ("simulated=True", "def test_it(amqp_broker): pass", "a simulated test is a coroutine"),
        ("simulated=1", "async def test_it(amqp_broker): pass", "simulated=1: give True or False"),
        ("simulated=True, seeds=0", "async def test_it(amqp_broker): pass", "seeds=0: give the number"),
        ("simulated=True, seeds='all'", "async def test_it(amqp_broker): pass", "seeds='all': give the num"),
        (
            "simulated=False, seeds=3",
            "async def test_it(amqp_broker): pass",
            "seeds=3 is about simulations, and this test is not simulated: add simulated=True",
        ),
        ("seeds=3", "def test_it(amqp_broker): pass", "seeds=3 is about simulations*add simulated=True"),
        ("seeds=3", "async def test_it(): pass", "seeds=3 is about simulations*add simulated=True"),
        ("kinds=['task']", "def test_it(): pass", "kinds=['task'] is about simulations*add simulated=True"),
        ("patch_time=True", "def test_it(): pass", "patch_time=True is about simulations*"),
        ("time_limit=60", "def test_it(): pass", "time_limit=60 is about simulations*"),
        ("simulated=True, kinds=['dealy']", "async def test_it(amqp_broker): pass", "no kind 'dealy'"),
        ("simulate=True", "async def test_it(amqp_broker): pass", "did you mean 'simulated'?"),
        ("simulated=True", "async def test_it(pika_channel): pass", "the clients of pika_channel block"),
        ("simulated=True, runtime='thread'", "async def test_it(amqp_broker): pass", "leave out runtime="),
        (
            "simulated=True",
            "async def test_it(amqp_broker_session): pass",
            "the broker of the session runs in a",
        ),
    ],
)
def test_invalid_simulation_marker_is_an_error_with_the_reason(
    run_tests: RunTests, marker: str, test: str, said: str
) -> None:
    result = run_tests(
        f"""
    import pytest

    @pytest.mark.amqp({marker})
    {test}
    """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{said.replace('[', '[[]')}*"])


def test_a_real_broker_is_not_simulated(run_tests: RunTests) -> None:
    result = run_tests(
        """
    import pytest

    @pytest.mark.amqp(simulated=True, seeds=3)
    async def test_it(amqp_url): pass
    """,
        "--amqp-real-url=amqp://127.0.0.1:1/",
    )
    result.assert_outcomes(skipped=1)


def test_marker_sets_start_time_and_time_limit_of_the_simulation(run_tests: RunTests) -> None:
    result = run_tests(
        """
    import asyncio
    import datetime
    import time
    import pytest

    @pytest.mark.amqp(simulated=True, now=datetime.datetime(2030, 1, 1), patch_time=True)
    async def test_now(amqp_broker):
        assert datetime.datetime.now(datetime.timezone.utc).year == 2030
        await asyncio.sleep(86_400)
        assert datetime.datetime.now(datetime.timezone.utc).day == 2

    @pytest.mark.amqp(simulated=True, time_limit=60)
    async def test_limit(amqp_broker):
        await asyncio.sleep(61)
    """
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*TimeLimit*"])


@pytest.mark.parametrize("how", ["marker", "option", "ini"])
def test_runtime_asyncio_runs_the_broker_in_the_loop_of_the_test(run_tests: RunTests, how: str) -> None:
    marker = {"marker": "(runtime='asyncio')"}.get(how, "()")
    options = {"option": ["--amqp-runtime=asyncio"], "ini": ["-o", "amqp_runtime=asyncio"]}.get(how, [])
    result = run_tests(
        f"""
    import asyncio
    import threading
    import pytest

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
    """,
        *options,
        "-W",
        "error",
    )
    result.assert_outcomes(passed=3)


def test_runtime_option_asyncio_does_not_apply_to_plain_functions(run_tests: RunTests) -> None:
    result = run_tests(
        """
    def test_it(pika_channel, amqp_broker_session):
        pika_channel.queue_declare("q")

    def test_own(pika_channel, amqp_broker):
        pika_channel.queue_declare("q")
    """,
        "--amqp-runtime=asyncio",
    )
    result.assert_outcomes(passed=2)


def test_runtime_asyncio_in_a_plain_function_is_an_error(run_tests: RunTests) -> None:
    result = run_tests(
        """
    import pytest

    @pytest.mark.amqp(runtime="asyncio")
    def test_it(amqp_broker): pass
    """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["the broker of a test that is not a coroutine cannot run in its event loop*"]
    )


def test_invalid_runtime_or_schedules_option_is_reported(run_tests: RunTests) -> None:
    result = run_tests("def test_it(): pass", "--amqp-runtime=asynico")
    assert (
        "there is no runtime 'asynico'; did you mean 'asyncio'?" in result.stderr.str() + result.stdout.str()
    )
    result = run_tests("def test_it(): pass", "--amqp-schedules=0")
    assert "0 is not a number of schedules" in result.stderr.str() + result.stdout.str()


def test_simulated_test_runs_once_with_the_option_compare(run_tests: RunTests) -> None:
    result = run_tests(
        """
    import pytest

    @pytest.mark.amqp(simulated=True, seeds=3)
    async def test_it(amqp_broker): pass
    """,
        "--amqp-compare=rabbitmq-3.13,rabbitmq-4.3",
    )
    result.assert_outcomes(passed=1)


def test_a_seed_gives_the_same_trace_in_every_process(
    run_tests: RunTests,
    run_tests_apart: RunTests,
    monkeypatch: pytest.MonkeyPatch,
    pytester: pytest.Pytester,
) -> None:
    def trace(run: RunTests, seed: int, folder: str) -> bytes:
        options = (f"--amqp-seed={seed}", f"--amqp-trace={folder}", "--amqp-trace-formats=jsonl")
        assert run(RACE.format(seeds=200), *options).ret in (0, 1)
        [path] = (pytester.path / folder).iterdir()
        return path.read_bytes()

    monkeypatch.setenv("PYTHONHASHSEED", "1")
    first = trace(run_tests_apart, 8, "first")
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    assert trace(run_tests_apart, 8, "second") == first
    assert trace(run_tests, 9, "third") != first
    assert first.count(b"queue.declare") >= 2
