from __future__ import annotations

import pytest

from compat_tests.plugin.conftest import WriteTests

FAILS = """
    def test_it(pika_channel):
        pika_channel.queue_declare("orders")
        assert False, "on purpose"
"""


def test_a_failing_test_reports_the_timeline(write_tests: WriteTests) -> None:
    write_tests(FAILS).run(failed=1, said=["*AMQP timeline*", "*queue.declare*orders*", "*queue.declare-ok*"])


def test_passing_test_reports_no_timeline(write_tests: WriteTests) -> None:
    result = write_tests(FAILS.replace("assert False", "assert True")).run("-rA", passed=1)
    assert "AMQP timeline" not in result.stdout.str()


def test_a_failing_asynchronous_test_reports_the_timeline(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.mark.asyncio
        async def test_it(aio_pika_connection):
            channel = await aio_pika_connection.channel()
            await channel.declare_queue("orders")
            assert False, "on purpose"
    """).run(failed=1, said=["*AMQP timeline*", "*queue.declare*orders*"])


def test_a_fixture_that_fails_reports_the_timeline(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.fixture
        def orders(pika_channel):
            pika_channel.queue_declare("orders", passive=True)

        def test_it(orders):
            pass
    """).run(errors=1, said=["*AMQP timeline*", "*404*NOT_FOUND*"])


def test_every_broker_of_the_test_has_a_section(write_tests: WriteTests) -> None:
    result = write_tests("""
        def test_it(make_amqp_broker):
            for broker in (make_amqp_broker(), make_amqp_broker(users={"bob": "swordfish"})):
                print("made", f"{broker.host}:{broker.port}")
            assert False, "on purpose"
    """).run(failed=1)
    text = result.stdout.str()
    places = [line.removeprefix("made ") for line in text.splitlines() if line.startswith("made 127")]
    assert len(places) == 2
    for place in places:
        assert f"AMQP timeline of {place}" in text
    assert not [line for line in text.splitlines() if "AMQP" in line and "swordfish" in line]


@pytest.mark.parametrize("lines", [5, 0])
def test_the_last_lines_are_reported_and_the_number_can_be_set(write_tests: WriteTests, lines: int) -> None:
    result = write_tests("""
        def test_it(pika_channel):
            for number in range(50):
                pika_channel.queue_declare(f"queue-{number}")
            assert False, "on purpose"
    """).run("-o", f"amqp_timeline_lines={lines}", failed=1)
    text = result.stdout.str()
    assert "queue-49" in text.split("AMQP timeline")[1]
    assert ("queue-0" in text.split("AMQP timeline")[1]) is (lines == 0)
    # 3 events for each queue, and 10 to open connection and channel.
    note = "(155 earlier events left out; -o amqp_timeline_lines=0 shows all)"
    assert (note in text) is (lines != 0)


def test_timeline_shows_the_last_40_events_and_names_the_connections(write_tests: WriteTests) -> None:
    result = write_tests("""
        def test_it(pika_channel):
            for number in range(50):
                pika_channel.queue_declare(f"queue-{number}")
            assert False, "on purpose"
    """).run()
    lines = result.stdout.str().split("AMQP timeline")[1].splitlines()
    assert lines[1].startswith("(120 earlier events left out")
    assert lines[2].startswith("(c1 is 127.0.0.1:")
    assert len([line for line in lines if "  c1 " in line]) == 40
    assert "queue-49" in lines[42]


def test_report_of_a_failed_test_says_that_the_trace_is_off(write_tests: WriteTests) -> None:
    write_tests("    @pytest.mark.amqp(trace=0)" + FAILS).run(
        failed=1, said=["*AMQP timeline*", "(the trace is off)"]
    )


def test_a_bug_of_the_broker_is_an_error_of_its_test_alone(write_tests: WriteTests) -> None:
    write_tests("""
        def test_first(amqp_broker):
            amqp_broker._engine.failures.record("a timer", ZeroDivisionError("so it is"))

        def test_second(amqp_broker):
            pass
    """).run(
        "--amqp-scope=session",
        passed=2,
        errors=1,
        said=["bug in fakeamqp: a timer: ZeroDivisionError(*so it is*)"],
    )


def test_report_has_the_timeline_of_a_stopped_broker(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_broker, pika_channel):
            pika_channel.queue_declare("orders")
            amqp_broker.stop()
            assert False, "on purpose"
    """).run(failed=1, said=["*AMQP timeline*", "*queue.declare*orders*"])


def test_a_report_has_no_password(write_tests: WriteTests) -> None:
    result = write_tests("""
        @pytest.mark.amqp(users={"app": "kanarienvogel"})
        def test_it(amqp_broker):
            parameters = pika.URLParameters(amqp_broker.url)
            with pika.BlockingConnection(parameters) as connection:
                connection.channel().queue_declare("orders", passive=True)
    """).run("-l", failed=1, said=["*AMQP timeline*", "*connection.start-ok*"])
    timeline = result.stdout.str().split("AMQP timeline")[1]
    assert "kanarienvogel" not in timeline


def test_a_failing_test_with_races_reports_their_seed_and_delays(write_tests: WriteTests) -> None:
    test = """
        @pytest.mark.amqp(races={races})
        def test_it(pika_channel):
            pika_channel.queue_declare("orders", durable=True)
            pika_channel.confirm_delivery()
            for _ in range(100):
                pika_channel.basic_publish("", "orders", b"")
            assert False, "on purpose"
    """
    first = write_tests(test.format(races=True)).run(
        failed=1,
        said=[
            "*AMQP races*",
            "races=*, or --amqp-races=*, repeats these delays:",
            "(* earlier ones left out)",
            "* on channel 1 of c1 *is sent * ms late",
        ],
    )
    lines = first.stdout.lines
    start = next(index for index, line in enumerate(lines) if line.startswith("races="))
    seed = lines[start].split(",")[0].removeprefix("races=")
    for again in (
        write_tests(test.format(races=seed)).run(),
        write_tests(test.format(races=7)).run(f"--amqp-races={seed}"),
    ):
        repeated = again.stdout.lines.index(lines[start])
        assert again.stdout.lines[repeated : repeated + 20] == lines[start : start + 20]
    assert "AMQP races" not in write_tests(FAILS).run().stdout.str()


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
    write_tests: WriteTests, option: list[str], ini: list[str], expected: list[object], scope: str
) -> None:
    tests = "".join(
        f"""
        {mark}
        def test_{number}(amqp_broker):
            seed = amqp_broker.admin.race_seed
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
    write_tests(tests).run(*option, *ini, f"--amqp-scope={scope}", passed=4 if scope == "function" else 1)


WAITS_IN_VAIN = """
    {mark}
    async def test_it(amqp_broker):
        amqp_broker.publish(b"apples", routing_key="orders")
        await amqp_broker.wait_for.aio(lambda: amqp_broker.queues, timeout=0.01)
"""


@pytest.mark.parametrize("mark", ["@pytest.mark.asyncio", "@pytest.mark.amqp(simulated=True, seeds=2)"])
def test_events_that_the_timeline_shows_are_not_repeated_by_errors(
    write_tests: WriteTests, mark: str
) -> None:
    result = write_tests(WAITS_IN_VAIN.format(mark=mark)).run(failed=1)
    text = result.stdout.str()
    assert text.count("routing_key='orders'") == 1
    assert "the latest events of the broker" not in text
    assert "the broker holds no queue" in text


def test_events_of_a_broker_without_a_timeline_in_the_report_stay_in_the_error(
    write_tests: WriteTests,
) -> None:
    write_tests("""
        from fakeamqp import Broker

        def test_it(amqp_broker):
            with Broker() as broker:
                broker.publish(b"apples", routing_key="orders")
                broker.wait_for(lambda: broker.queues, timeout=0.01)
    """).run(said=["E *the latest events of the broker:", "E *apples*"])


def test_the_fault_is_in_the_report_behind_many_heartbeats(write_tests: WriteTests) -> None:
    result = write_tests("""
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
    """).run("-o", "amqp_timeline_lines=20", failed=1)
    text = result.stdout.str().split("AMQP timeline")[1]
    assert "fault: when a basic.publish comes: drop it" in text
    assert text.count(" heartbeat") <= 1
    full = write_tests("""
        def test_it(amqp_broker, amqp_clock, pika_connection):
            for _ in range(60):
                amqp_broker.publish(b"one pear", routing_key="orders")
                amqp_clock.advance(30)
            assert False, "on purpose"
    """).run("-o", "amqp_timeline_lines=0")
    full.stdout.re_match_lines([r" +30\.000 \[real +\d\.\d{3}\]  c1 <- 0    60 heartbeats until 1800\.000"])
