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


def test_a_passing_test_reports_nothing(run_tests: RunTests) -> None:
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


def test_forty_lines_are_a_screenful_and_say_who_is_who(run_tests: RunTests) -> None:
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


def test_a_trace_that_is_off_is_no_reason_to_stumble(run_tests: RunTests) -> None:
    result = run_tests("    import pytest\n    @pytest.mark.amqp(trace=0)" + FAILS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*AMQP timeline*", "(the trace is off)"])


def test_the_number_of_lines_must_be_a_number(run_tests: RunTests) -> None:
    result = run_tests("", "-o", "amqp_timeline_lines=many")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*'many' is not a number of lines*"])


def test_a_broker_that_was_stopped_still_tells_what_happened(run_tests: RunTests) -> None:
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
            "races=* repeats these delays:",
            "(* earlier ones left out)",
            "* on channel 1 of c1 *is sent * ms late",
        ]
    )
    lines = first.stdout.lines
    start = next(index for index, line in enumerate(lines) if line.startswith("races="))
    seed = lines[start].split()[0].removeprefix("races=")
    again = run_tests(test.format(races=seed)).stdout.lines
    repeated = again.index(lines[start])
    assert again[repeated : repeated + 20] == lines[start : start + 20]
    assert "AMQP races" not in run_tests(FAILS).stdout.str()


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
