"""The marker's `checks`: what the checks of a trace find fails the test."""

from __future__ import annotations

import pytest

from compat_tests.plugin.conftest import RunTests

TEST = """
    import pytest

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
def test_a_finding_fails_the_test(run_tests: RunTests, marker: str) -> None:
    result = run_tests(TEST.format(marker=marker, queue="nowhere"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["the trace has 1 finding:", "*message-lost*three pears*", "*basic.publish*", "*basic.ack*"]
    )
    result.stdout.fnmatch_lines(["FAILED test_inner.py::test_it - CheckFailed: the trace has 1 finding*"])
    assert "plugin.py" not in result.stdout.str()


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
def test_what_is_in_order_passes(run_tests: RunTests, marker: str, queue: str) -> None:
    run_tests(TEST.format(marker=marker, queue=queue)).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("checks='lots'", "there is no check 'lots'; did you mean 'lost'?"),
        ("checks=True, allow='unroutabel'", "there is no rule or reason 'unroutabel' to allow; did you mean"),
        ("checks=7", "checks=7: give True, or the names of checks"),
        ("allow='unroutable'", "allow=... is about checks; add checks=True"),
        ("check=True", "did you mean 'checks'?"),
    ],
)
def test_a_misspelled_argument_is_an_error(run_tests: RunTests, marker: str, said: str) -> None:
    result = run_tests(TEST.format(marker=marker, queue="q"))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{said.replace('[', '[[]')}*"])


def test_a_test_that_fails_by_itself_says_its_own(run_tests: RunTests) -> None:
    result = run_tests(TEST.format(marker="checks=True", queue="nowhere") + "        assert 1 == 2\n")
    result.assert_outcomes(failed=1)
    assert "CheckFailed" not in result.stdout.str()
