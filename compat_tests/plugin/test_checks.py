"""The marker's `checks`: what the checks of a trace find fails the test."""

from __future__ import annotations

import pytest

from compat_tests.plugin.conftest import WriteTests

TEST = """
    @pytest.mark.amqp({marker})
    def test_it(pika_channel, amqp_broker):
        pika_channel.confirm_delivery()
        pika_channel.queue_declare("q")
        pika_channel.basic_publish("", "q", b"two apples")
        method, _, _ = pika_channel.basic_get("q")
        pika_channel.basic_ack(method.delivery_tag)
        pika_channel.basic_publish("", "{queue}", b"three pears")
"""


@pytest.mark.parametrize(
    "marker", ["checks=True", "checks='lost'", "checks=['duplicates', 'lost'], allow='maxlen'"]
)
def test_a_finding_fails_the_test(write_tests: WriteTests, marker: str) -> None:
    result = write_tests(TEST.format(marker=marker, queue="nowhere")).run(
        failed=1,
        said=["the trace has 1 finding:", "*message-lost*three pears*", "*basic.publish*", "*basic.ack*"],
    )
    result.stdout.fnmatch_lines(["FAILED test_inner.py::test_it - CheckFailed: the trace has 1 finding*"])
    assert "plugin.py" not in result.stdout.str()
    assert "During handling" not in result.stdout.str()


@pytest.mark.parametrize(
    ("marker", "queue"),
    [
        ("checks=True", "q"),
        ("checks=True, allow='unroutable'", "nowhere"),
        ("checks='duplicates'", "nowhere"),
        ("checks=False", "nowhere"),
        ("", "nowhere"),
    ],
)
def test_test_without_findings_of_enabled_checks_passes(
    write_tests: WriteTests, marker: str, queue: str
) -> None:
    write_tests(TEST.format(marker=marker, queue=queue)).run(passed=1)


def test_failed_test_reports_its_own_error_and_not_the_findings(write_tests: WriteTests) -> None:
    result = write_tests(TEST.format(marker="checks=True", queue="nowhere") + "        assert 1 == 2\n").run(
        failed=1
    )
    assert "CheckFailed" not in result.stdout.str()


def test_unread_result_with_a_finding_or_failure_fails_the_test(write_tests: WriteTests) -> None:
    """`trace.findings`, `replay` and `explore` return what they find; a statement drops it."""
    write_tests("""
        from fakeamqp import simulation
        from fakeamqp.replay import replay

        @pytest.fixture
        def traced(amqp_broker, pika_channel):
            pika_channel.confirm_delivery()
            pika_channel.basic_publish("", "nowhere", b"lost")
            pika_channel.queue_delete("missing")
            return amqp_broker.trace

        async def fail():
            raise ZeroDivisionError

        def test_findings(traced):
            traced.findings("lost")

        def test_named_findings(traced):
            found = traced.findings("lost")

        def test_exploration():
            simulation.explore(fail, seeds=2)

        def test_replay(traced):
            replay(traced, personality="spec")

        def test_nothing_wrong(traced):
            traced.findings("prefetch")
            replay(traced)
            async def pass_(): pass
            simulation.explore(pass_, seeds=2)

        def test_read(traced):
            assert traced.findings("lost") != ()
            assert not traced.findings("lost") == ()
            [finding] = traced.findings("lost")
            assert traced.findings("lost")[0] == finding and finding in traced.findings("lost")
            assert len(traced.findings("lost")) == 1
            assert "finding" in str(traced.findings("lost")) and repr(traced.findings("lost"))
            assert not replay(traced, personality="spec").same
            assert "404" in str(replay(traced, personality="spec"))
            assert simulation.explore(fail, seeds=2).failure

        def test_no_schedule():
            with pytest.raises(simulation.SimulationError, match="no schedules"):
                simulation.check(fail, seeds=0)
    """).run(
        failed=4,
        passed=3,
        said=[
            "trace.findings() has found something, and nothing has read it: use expect_no_findings()",
            "explore() has found a failure, and nothing has read it: use check()",
            "a replay differs from its recording, and nothing has read it: use expect_same()",
        ],
    )
