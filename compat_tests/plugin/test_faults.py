from __future__ import annotations

import sys

import pytest

from compat_tests.plugin.conftest import WriteTests

UNUSED = "a fault was installed and never happened"


def test_the_fixture_breaks_the_broker_of_the_test(write_tests: WriteTests) -> None:
    write_tests("""
        from fakeamqp.faults import Faults

        def test_it(amqp_faults, amqp_broker, pika_channel):
            assert type(amqp_faults).__name__ == Faults.__name__
            assert amqp_faults is amqp_broker.faults
            rule = amqp_faults.on("queue.declare").once().close_channel(403)
            with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="403"):
                pika_channel.queue_declare("orders")
            assert rule.hits == 1
    """).run(passed=1)


def test_an_unused_fault_fails_its_test(write_tests: WriteTests) -> None:
    result = write_tests("""
        def test_it(amqp_faults, pika_channel):
            amqp_faults.on("queue.declare", queue="orders").close_channel(403)
            pika_channel.queue_declare("invoices")
    """).run(failed=1)
    lines = result.stdout.lines
    start = next(number for number, line in enumerate(lines) if "_ test_it _" in line)
    # What is wrong comes at once, and nothing of the plugin, of pytest or of pluggy is shown.
    assert lines[start + 1].startswith(UNUSED)
    result.stdout.fnmatch_lines(
        ["*when a queue.declare with queue 'orders' comes*", "*near miss*'invoices'*", "*AMQP timeline*"]
    )
    text = "\n".join(lines[start:])
    assert not [word for word in ("unused_faults.py", "plugin.py", "pluggy", "hidden") if word in text]
    assert "AMQP faults that never happened" not in text
    result.stdout.fnmatch_lines([f"FAILED test_inner.py::test_it - UnusedFault: {UNUSED[:20]}*"])


@pytest.mark.parametrize("style", ["long", "short", "line", "native", "no"])
def test_no_style_of_traceback_shows_the_plugin(write_tests: WriteTests, style: str) -> None:
    result = write_tests("def test_it(amqp_faults): amqp_faults.on('queue.declare').drop()").run(
        f"--tb={style}", "--color=no", failed=1
    )
    assert "unused_faults.py" not in result.stdout.str()
    if style == "line":
        result.stdout.fnmatch_lines([f"*test_inner.py:2: UnusedFault: {UNUSED}*"])


@pytest.mark.parametrize("optional", ["on('basic.publish', optional=True)", "on('basic.publish').optional()"])
def test_unused_optional_fault_does_not_fail_the_test(write_tests: WriteTests, optional: str) -> None:
    write_tests(f"def test_it(amqp_faults): amqp_faults.{optional}.nack()").run(passed=1)


def test_unused_fault_removed_by_clear_does_not_fail_the_test(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_faults):
            amqp_faults.on("basic.publish").nack()
            amqp_faults.clear()
    """).run(passed=1)


def test_fault_unused_at_the_end_of_its_with_block_fails_the_test(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_faults):
            with amqp_faults.on("basic.publish").nack():
                pass
    """).run(failed=1)


def test_publish_sent_at_the_end_of_the_test_uses_the_fault(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.mark.parametrize("turn", range(20))
        def test_it(amqp_faults, pika_channel, turn):
            amqp_faults.on("basic.publish").drop()
            pika_channel.basic_publish("", "orders", bytes(1_000_000))  # Nobody waits for an answer.
    """).run(passed=20)


def test_every_broker_of_the_test_is_looked_at(write_tests: WriteTests) -> None:
    result = write_tests("""
        def test_it(make_amqp_broker):
            for broker in (make_amqp_broker(), make_amqp_broker(), make_amqp_broker()):
                print("made", f"{broker.host}:{broker.port}")
                if broker.port:
                    broker.faults.on("tx.commit").drop()
            broker.faults.clear()
    """).run(failed=1)
    text = result.stdout.str()
    first, second, third = (line.split()[1] for line in text.splitlines() if line.startswith("made 127"))
    assert f"{first}: {UNUSED}" in text
    assert f"{second}: {UNUSED}" in text
    assert f"{third}: {UNUSED}" not in text


def test_a_test_that_failed_anyway_is_told_of_its_unused_faults(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_faults):
            amqp_faults.on("basic.publish").nack()
            assert False, "on purpose"
    """).run(
        failed=1,
        said=["E*on purpose*", "*AMQP faults that never happened*", f"{UNUSED}*", "FAILED *on purpose*"],
    )


def test_a_fixture_that_failed_is_not_the_fault_of_a_fault(write_tests: WriteTests) -> None:
    result = write_tests("""
        @pytest.fixture
        def orders(amqp_faults):
            amqp_faults.on("basic.publish").nack()
            raise ValueError("on purpose")

        def test_it(orders):
            pass
    """).run(errors=1)
    assert UNUSED not in result.stdout.str()


def test_a_fixture_may_install_the_fault(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.fixture
        def nothing_arrives(amqp_faults):
            return amqp_faults.on("basic.publish").drop()

        def test_used(nothing_arrives, pika_channel):
            pika_channel.basic_publish("", "orders", b"one")
            nothing_arrives.wait()

        def test_unused(nothing_arrives):
            pass
    """).run(passed=1, failed=1)


def test_unused_fault_does_not_change_a_skip_or_an_expected_failure(write_tests: WriteTests) -> None:
    write_tests("""
        def test_skips(amqp_faults):
            amqp_faults.on("basic.publish").nack()
            pytest.skip("on purpose")

        @pytest.mark.xfail(strict=True)
        def test_fails_as_expected(amqp_faults):
            amqp_faults.on("basic.publish").nack()
            assert False

        @pytest.mark.xfail(strict=True)
        def test_fails_by_the_unused_fault_alone(amqp_faults):
            amqp_faults.on("basic.publish").nack()

        @pytest.mark.xfail(raises=ZeroDivisionError)
        def test_fails_otherwise_than_expected(amqp_faults):
            amqp_faults.on("basic.publish").nack()

        @pytest.mark.xfail(run=False)
        def test_is_not_run(amqp_faults):
            amqp_faults.on("basic.publish").nack()
    """).run(skipped=1, xfailed=3, failed=1, said=["FAILED *test_fails_otherwise_than_expected*"])


@pytest.mark.parametrize("base", ["TestCase", "IsolatedAsyncioTestCase"])
def test_unittest_classes(write_tests: WriteTests, base: str) -> None:
    word = "async def" if base.startswith("Isolated") else "def"
    result = write_tests(f"""
        class Orders(unittest.{base}):
            @pytest.fixture(autouse=True)
            def take_faults(self, amqp_faults, pika_channel):
                self.faults = amqp_faults
                self.channel = pika_channel

            {word} test_used(self):
                self.faults.on("queue.declare").duplicate()
                self.channel.queue_declare("orders")

            {word} test_unused(self):
                self.faults.on("queue.declare").drop()

            {word} test_fails(self):
                self.faults.on("queue.declare").drop()
                self.assertEqual("on", "purpose")

            {word} test_skips(self):
                self.faults.on("queue.declare").drop()
                self.skipTest("on purpose")

            @unittest.expectedFailure
            {word} test_fails_as_expected(self):
                self.faults.on("queue.declare").drop()
                self.assertEqual("on", "purpose")
    """).run(
        "-rA",
        passed=1,
        failed=2,
        skipped=1,
        xfailed=1,
        said=["E*'on' != 'purpose'*", "*AMQP faults that never happened*"],
    )
    result.stdout.fnmatch_lines([f"{UNUSED}*"])
    result.stdout.fnmatch_lines(["PASSED *test_used"])
    result.stdout.fnmatch_lines([f"FAILED *test_unused - *{UNUSED[:20]}*"])


@pytest.mark.parametrize("marker", ["asyncio", "anyio"])
def test_asynchronous_tests(write_tests: WriteTests, marker: str) -> None:
    result = write_tests(f"""
        pytestmark = pytest.mark.{marker}

        @pytest.fixture(scope="module")
        def anyio_backend():
            return "asyncio"

        async def test_used(amqp_faults, aio_pika_connection):
            rule = amqp_faults.on("queue.declare").delay(0)
            channel = await aio_pika_connection.channel()
            await channel.declare_queue("orders")
            await rule.wait.aio()

        async def test_unused(amqp_faults, aio_pika_connection):
            amqp_faults.on("queue.declare").drop()
    """).run("-rA", passed=1, failed=1, said=["_* test_unused _*", f"{UNUSED}*"])
    result.stdout.fnmatch_lines(["PASSED *test_used", "FAILED *test_unused*"])


def test_faults_end_before_fixtures_say_goodbye(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.fixture
        def orders(amqp_faults, pika_connection):
            # pika waits for the answer to its goodbye: for ever, if that were lost.
            rule = amqp_faults.on("connection.close").optional().drop()
            yield rule
            in_force = amqp_faults.rules
            amqp_faults.clear()
            assert not in_force
            pika_connection.close()
            assert rule.hits == 0

        @pytest.mark.parametrize("fails", [False, True])
        def test_call(orders, fails):
            assert not fails

        @pytest.fixture
        def fails(orders):
            raise ValueError("on purpose")

        def test_set_up(fails):
            pass
    """).run(passed=1, failed=1, errors=1)


def test_each_test_starts_without_faults(write_tests: WriteTests) -> None:
    write_tests("""
        @pytest.mark.parametrize("turn", range(2))
        def test_it(amqp_faults, pika_channel, turn):
            assert not amqp_faults.rules
            amqp_faults.on("queue.declare").duplicate()
            pika_channel.queue_declare("orders")
    """).run(passed=2)


def test_tests_without_faults_do_not_import_the_faults_package(write_tests: WriteTests) -> None:
    write_tests("""
        import sys

        def test_it(amqp_broker, pika_channel):
            pika_channel.queue_declare("orders")

        def test_fails(amqp_broker):
            assert False

        def test_afterwards():
            assert "fakeamqp.broker" in sys.modules
            assert not [name for name in sys.modules if name.startswith("fakeamqp.faults")]
    """).run_apart(passed=2, failed=1)


def test_unused_fault_of_a_stopped_broker_fails_the_test(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_broker, amqp_faults):
            amqp_faults.on("queue.declare").drop()
            amqp_broker.stop()
    """).run(failed=1, said=[f"{UNUSED}*"])


def test_unused_fault_in_an_xdist_worker_is_reported(write_tests: WriteTests) -> None:
    write_tests("def test_it(amqp_faults): amqp_faults.on('queue.declare').drop()").run_apart(
        "-n", "2", failed=1, said=[f"{UNUSED}*"]
    )


def test_a_function_that_fails_fails_the_test(write_tests: WriteTests) -> None:
    result = write_tests("""
        def test_it(amqp_faults, pika_channel):
            def look(group):
                assert group.method.queue == "invoices"
            amqp_faults.on("queue.declare").call(look)
            pika_channel.queue_declare("orders")
    """).run(failed=1, said=[">*assert group.method.queue == *invoices*", "E*AssertionError*"])
    if sys.version_info >= (3, 11):  # Before, exceptions took no notes.
        result.stdout.fnmatch_lines(["*raised in a fault rule: when a queue.declare comes: call look*"])


def test_a_test_that_fails_anyway_is_told_of_the_function(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_faults, pika_channel):
            amqp_faults.on("queue.declare").call(lambda group: 1 / 0)
            pika_channel.queue_declare("orders")
            assert not "on purpose"
    """).run(failed=1, said=["E*on purpose*", "*a callback of the test has failed*ZeroDivisionError*"])


def test_a_failed_test_says_the_plan_of_its_chaos(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_faults, pika_channel):
            with amqp_faults.chaos("my seed", {"close-channel": 1.0}) as chaos:
                with pytest.raises(pika.exceptions.ChannelClosedByBroker):
                    pika_channel.queue_declare("orders")
            assert not chaos.plan

        def test_that(amqp_faults):
            assert not amqp_faults.chaos(1)
    """).run(
        failed=2,
        said=[
            "*AMQP chaos plan*",
            "# seed 'my seed', profile a profile of its own",
            "connection number 1: received queue.declare number 1 on channel 1: close-channel (*)",
            "*AMQP chaos plan*",
            "# seed 1, profile mixed",
        ],
    )


def test_exception_raised_by_a_service_fails_the_test(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_broker, pika_channel):
            amqp_broker.admin.add_service("s", lambda _: {}["nothing"])
            pika_channel.basic_publish("amq.system", "s", b"")
    """).run(failed=1, said=["*KeyError: 'nothing'*"])


def test_exception_raised_by_a_tunnel_handler_fails_the_test(write_tests: WriteTests) -> None:
    write_tests("""
        from fakeamqp import FakeAMQPError
        from fakeamqp.protocols.amqp_0_9.public import TunnelRequest
        from fakeamqp.protocols.amqp_0_9.registrations import Registrations

        def test_it(amqp_broker):
            request = TunnelRequest({}, {}, "proxy", "", False, False, b"", "c", 1, "/", "guest")
            amqp_broker.admin.amqp_0_9.tunnel("proxy", lambda _: {}["nothing"])
            with pytest.raises(FakeAMQPError, match="has failed"):
                amqp_broker._reader.read(lambda state: state.extensions[Registrations].tunnel(request))
    """).run(failed=1, said=["*KeyError: 'nothing'*"])
