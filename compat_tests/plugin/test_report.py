from __future__ import annotations

import pytest

from compat_tests.plugin.conftest import RunTests

FAILS = """
    def test_it(pika_channel):
        pika_channel.queue_declare("orders")
        assert False, "on purpose"
"""


def test_a_failing_test_reports_the_timeline(run_tests: RunTests) -> None:
    result = run_tests(FAILS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*AMQP timeline*", "*queue.declare*orders*", "*queue.declare-ok*"])


def test_passing_test_reports_no_timeline(run_tests: RunTests) -> None:
    result = run_tests(FAILS.replace("assert False", "assert True"), "-rA")
    result.assert_outcomes(passed=1)
    assert "AMQP timeline" not in result.stdout.str()


def test_a_failing_asynchronous_test_reports_the_timeline(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pytest

        @pytest.mark.asyncio
        async def test_it(aio_pika_connection):
            channel = await aio_pika_connection.channel()
            await channel.declare_queue("orders")
            assert False, "on purpose"
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*AMQP timeline*", "*queue.declare*orders*"])


def test_a_fixture_that_fails_reports_the_timeline(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pytest

        @pytest.fixture
        def orders(pika_channel):
            pika_channel.queue_declare("orders", passive=True)

        def test_it(orders):
            pass
        """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*AMQP timeline*", "*404*NOT_FOUND*"])


def test_every_broker_of_the_test_has_a_section(run_tests: RunTests) -> None:
    result = run_tests(
        """
        def test_it(make_amqp_broker):
            for broker in (make_amqp_broker(), make_amqp_broker(users={"bob": "swordfish"})):
                print("made", f"{broker.host}:{broker.port}")
            assert False, "on purpose"
        """
    )
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    places = [line.removeprefix("made ") for line in text.splitlines() if line.startswith("made 127")]
    assert len(places) == 2
    for place in places:
        assert f"AMQP timeline of {place}" in text
    assert not [line for line in text.splitlines() if "AMQP" in line and "swordfish" in line]


@pytest.mark.parametrize("lines", [5, 0])
def test_the_last_lines_are_reported_and_the_number_can_be_set(run_tests: RunTests, lines: int) -> None:
    result = run_tests(
        """
        def test_it(pika_channel):
            for number in range(50):
                pika_channel.queue_declare(f"queue-{number}")
            assert False, "on purpose"
        """,
        "-o",
        f"amqp_timeline_lines={lines}",
    )
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "queue-49" in text.split("AMQP timeline")[1]
    assert ("queue-0" in text.split("AMQP timeline")[1]) is (lines == 0)
    # 3 events for each queue, and 10 to open connection and channel.
    note = "(155 earlier events left out; -o amqp_timeline_lines=0 shows all)"
    assert (note in text) is (lines != 0)


def test_timeline_shows_the_last_40_events_and_names_the_connections(run_tests: RunTests) -> None:
    result = run_tests(
        """
        def test_it(pika_channel):
            for number in range(50):
                pika_channel.queue_declare(f"queue-{number}")
            assert False, "on purpose"
        """
    )
    lines = result.stdout.str().split("AMQP timeline")[1].splitlines()
    assert lines[1].startswith("(120 earlier events left out")
    assert lines[2].startswith("(c1 is 127.0.0.1:")
    assert len([line for line in lines if "  c1 " in line]) == 40
    assert "queue-49" in lines[42]


def test_report_of_a_failed_test_says_that_the_trace_is_off(run_tests: RunTests) -> None:
    result = run_tests("    import pytest\n    @pytest.mark.amqp(trace=0)" + FAILS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*AMQP timeline*", "(the trace is off)"])


def test_the_number_of_lines_must_be_a_number(run_tests: RunTests) -> None:
    result = run_tests("", "-o", "amqp_timeline_lines=many")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*'many' is not a number of lines*"])


def test_a_bug_of_the_broker_is_an_error_of_its_test_alone(run_tests: RunTests) -> None:
    result = run_tests(
        """
        def test_first(amqp_broker):
            amqp_broker._engine.failures.record("a timer", ZeroDivisionError("so it is"))

        def test_second(amqp_broker):
            pass
        """,
        "--amqp-scope=session",
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["bug in fakeamqp: a timer: ZeroDivisionError(*so it is*)"])


def test_report_has_the_timeline_of_a_stopped_broker(run_tests: RunTests) -> None:
    result = run_tests(
        """
        def test_it(amqp_broker, pika_channel):
            pika_channel.queue_declare("orders")
            amqp_broker.stop()
            assert False, "on purpose"
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*AMQP timeline*", "*queue.declare*orders*"])


def test_a_report_has_no_password(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pika
        import pytest

        @pytest.mark.amqp(users={"app": "kanarienvogel"})
        def test_it(amqp_broker):
            parameters = pika.URLParameters(amqp_broker.url)
            with pika.BlockingConnection(parameters) as connection:
                connection.channel().queue_declare("orders", passive=True)
        """,
        "-l",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*AMQP timeline*", "*connection.start-ok*"])
    timeline = result.stdout.str().split("AMQP timeline")[1]
    assert "kanarienvogel" not in timeline


def test_a_failing_test_with_races_reports_their_seed_and_delays(run_tests: RunTests) -> None:
    test = """
        import pytest

        @pytest.mark.amqp(races={races})
        def test_it(pika_channel):
            pika_channel.queue_declare("orders", durable=True)
            pika_channel.confirm_delivery()
            for _ in range(100):
                pika_channel.basic_publish("", "orders", b"")
            assert False, "on purpose"
    """
    first = run_tests(test.format(races=True))
    first.assert_outcomes(failed=1)
    first.stdout.fnmatch_lines(
        [
            "*AMQP races*",
            "races=*, or --amqp-races=*, repeats these delays:",
            "(* earlier ones left out)",
            "* on channel 1 of c1 *is sent * ms late",
        ]
    )
    lines = first.stdout.lines
    start = next(index for index, line in enumerate(lines) if line.startswith("races="))
    seed = lines[start].split(",")[0].removeprefix("races=")
    for again in (
        run_tests(test.format(races=seed)),
        run_tests(test.format(races=7), f"--amqp-races={seed}"),
    ):
        repeated = again.stdout.lines.index(lines[start])
        assert again.stdout.lines[repeated : repeated + 20] == lines[start : start + 20]
    assert "AMQP races" not in run_tests(FAILS).stdout.str()


@pytest.mark.parametrize(
    ("option", "ini", "expected"),
    [
        ([], [], [None, 7, "drawn", None]),
        (["--amqp-races=11"], [], [11, 11, 11, None]),
        (["--amqp-races=true"], [], ["drawn", "drawn", "drawn", None]),
        (["--amqp-races=false"], [], [None, None, None, None]),
        ([], ["-oamqp_broker_arguments=races=5"], [5, 7, "drawn", None]),
        (["--amqp-races=11"], ["-oamqp_broker_arguments=races=5"], [11, 11, 11, None]),
    ],
)
@pytest.mark.parametrize("scope", ["function", "session"])
def test_the_option_for_races_overrides_marker_and_ini_file_but_not_a_refusal(
    run_tests: RunTests, option: list[str], ini: list[str], expected: list[object], scope: str
) -> None:
    tests = "".join(
        f"""
        {mark}
        def test_{number}(amqp_broker):
            seed = amqp_broker.race_seed
            assert {"seed == " + repr(wanted) if wanted != "drawn" else "seed not in (None, 5, 7, 11)"}
        """
        for number, (mark, wanted) in enumerate(
            zip(
                (
                    "",
                    "@pytest.mark.amqp(races=7)",
                    "@pytest.mark.amqp(races=True)",
                    "@pytest.mark.amqp(races=False)",
                ),
                expected,
                strict=True,
            )
        )
        if scope == "function" or not mark  # The broker of the session takes no arguments of a marker.
    )
    result = run_tests(f"        import pytest\n{tests}", *option, *ini, f"--amqp-scope={scope}")
    result.assert_outcomes(passed=4 if scope == "function" else 1)


WAITS_IN_VAIN = """
    import pytest

    {mark}
    async def test_it(amqp_broker):
        amqp_broker.publish(b"apples", routing_key="orders")
        await amqp_broker.wait_for_async(lambda: amqp_broker.queues(), timeout=0.01)
"""


@pytest.mark.parametrize("mark", ["@pytest.mark.asyncio", "@pytest.mark.amqp(simulated=True, seeds=2)"])
def test_events_that_the_timeline_shows_are_not_repeated_by_errors(run_tests: RunTests, mark: str) -> None:
    result = run_tests(WAITS_IN_VAIN.format(mark=mark))
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert text.count("routing_key='orders'") == 1
    assert "the latest events of the broker" not in text
    assert "the broker holds no queue" in text


def test_events_of_a_broker_without_a_timeline_in_the_report_stay_in_the_error(run_tests: RunTests) -> None:
    result = run_tests(
        """
        from fakeamqp import Broker

        def test_it(amqp_broker):
            with Broker() as broker:
                broker.publish(b"apples", routing_key="orders")
                broker.wait_for(lambda: broker.queues(), timeout=0.01)
        """
    )
    result.stdout.fnmatch_lines(["E *the latest events of the broker:", "E *apples*"])


def test_a_wrong_value_of_the_option_for_races_is_an_error(run_tests: RunTests) -> None:
    result = run_tests(FAILS, "--amqp-races=often")
    result.stderr.fnmatch_lines(
        ["*--amqp-races: 'often' is not true, false or a seed, which is a whole number"]
    )


def test_a_wrong_seed_of_races_is_an_error(run_tests: RunTests) -> None:
    result = run_tests(
        """
        import pytest

        @pytest.mark.amqp(races="often")
        def test_it(pika_channel):
            pass
        """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*races must be True, False or a seed*not 'often'*"])


def test_the_fault_is_in_the_report_behind_many_heartbeats(run_tests: RunTests) -> None:
    result = run_tests(
        """
        def test_it(amqp_broker, amqp_clock, amqp_faults, pika_connection):
            channel = pika_connection.channel()
            channel.queue_declare("orders", arguments={"x-message-ttl": 10_000})
            dropped = amqp_faults.on("basic.publish").once().drop()
            channel.basic_publish("", "orders", b"two apples")
            dropped.wait(1)
            for _ in range(60):
                amqp_broker.publish(b"one pear", routing_key="orders")
                amqp_clock.advance(30)
            assert False, "on purpose"
        """,
        "-o",
        "amqp_timeline_lines=20",
    )
    result.assert_outcomes(failed=1)
    text = result.stdout.str().split("AMQP timeline")[1]
    assert "fault: when a basic.publish comes: drop it" in text
    assert text.count(" heartbeat") <= 1
    full = run_tests(
        """
        def test_it(amqp_broker, amqp_clock, pika_connection):
            for _ in range(60):
                amqp_broker.publish(b"one pear", routing_key="orders")
                amqp_clock.advance(30)
            assert False, "on purpose"
        """,
        "-o",
        "amqp_timeline_lines=0",
    )
    full.stdout.re_match_lines([r" +30\.000 \[real +\d\.\d{3}\]  c1 <- 0    60 heartbeats until 1800\.000"])
