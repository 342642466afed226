"""`--amqp-inspect` holds the brokers of a failed test open."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import pytest

from compat_tests.management.inspector_client import Page
from compat_tests.plugin.conftest import RunTests
from fakeamqp import Broker

FAILING = """
def test_fails(amqp_broker, pika_channel) -> None:
    pika_channel.queue_declare("orders")
    assert amqp_broker.queue("orders").ready == 1

def test_passes(amqp_broker) -> None:
    pass
"""


class Waits:
    """Takes the place of the event that the plugin waits for. `happens` is what the user does meanwhile."""

    def __init__(self) -> None:
        self.count = 0
        self.brokers: list[Broker] = []
        self.goes_on = False
        self.happens: Callable[[], object] = self.press_the_button

    def __call__(self) -> Waits:
        return self

    def set(self) -> None:
        self.goes_on = True

    def is_set(self) -> bool:
        return self.goes_on

    def press_the_button(self) -> None:
        assert "goes on" in Page.of(self.brokers[0]).do("end-hold")

    def wait(self) -> None:
        self.count += 1
        self.happens()
        assert self.goes_on


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    waits = Waits()
    inspecting = import_module("pytest_fakeamqp.inspecting")
    monkeypatch.setattr(inspecting, "Event", waits)

    def of(item: pytest.Item) -> list[Broker]:
        waits.brokers = remembered(item)
        return waits.brokers

    remembered = inspecting.brokers.of
    monkeypatch.setattr(inspecting.brokers, "of", of)
    return waits


def test_a_failed_test_is_held_until_the_page_lets_it_go(run_tests: RunTests, waits: Waits) -> None:
    seen: list[str] = []

    def look() -> None:
        [broker] = waits.brokers
        with Page.of(broker).events() as events:
            _, state = events.next()
        seen.append(state["broker"]["held"])
        # Its fixtures are as they were.
        assert broker.queue("orders").exists and broker.connections
        waits.press_the_button()

    waits.happens = look
    result = run_tests(FAILING, "--amqp-inspect")
    result.assert_outcomes(passed=1, failed=1)
    assert waits.count == 1
    assert seen == ["test_inner.py::test_fails"]
    result.stdout.fnmatch_lines(
        [
            "*AMQP inspector: test_inner.py::test_fails*",
            "AssertionError*",
            "The failed test is held open. Its broker: http://127.0.0.1:*/inspector/#token=*",
            "Ctrl-C, or the button on the page, goes on with the next test.",
            "*1 failed, 1 passed*",
        ]
    )


def test_ctrl_c_goes_on_with_the_next_test(run_tests: RunTests, waits: Waits) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    waits.happens = interrupt
    result = run_tests(FAILING, "--amqp-inspect")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["The test goes on."])


def test_every_broker_of_the_test_has_its_page(run_tests: RunTests, waits: Waits) -> None:
    result = run_tests(
        """
        def test_two(make_amqp_broker):
            make_amqp_broker(), make_amqp_broker()
            assert 0
        """,
        "--amqp-inspect",
    )
    result.stdout.fnmatch_lines(["*Its broker of 127.0.0.1:*: http*", "*Its broker of 127.0.0.1:*: http*"])


def test_only_failed_tests_with_a_broker_and_the_option_are_held(run_tests: RunTests, waits: Waits) -> None:
    run_tests("def test_fails(): assert 0", "--amqp-inspect").assert_outcomes(failed=1)
    skipped = "import pytest\ndef test_skips(amqp_broker): pytest.skip('no')"
    run_tests(skipped, "--amqp-inspect").assert_outcomes(skipped=1)
    expected = "import pytest\n@pytest.mark.xfail\ndef test_is_known(amqp_broker): assert 0"
    run_tests(expected, "--amqp-inspect").assert_outcomes(xfailed=1)
    run_tests(FAILING).assert_outcomes(passed=1, failed=1)
    assert waits.count == 0


def test_a_fault_that_never_happened_holds_its_test(run_tests: RunTests, waits: Waits) -> None:
    unused = "def test_fails(amqp_faults): amqp_faults.on('basic.publish').drop()"
    run_tests(unused, "--amqp-inspect").assert_outcomes(failed=1)
    assert waits.count == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["-n", "1"], "*holds one test open at a time*run without -n*"),
        (["--amqp-real-url", "amqp://localhost/"], "*leave out --amqp-real-url*"),
        (["--amqp-compare", "spec,rabbitmq-4.3"], "*leave out --amqp-compare*"),
    ],
)
def test_amqp_inspect_with_xdist_real_url_or_compare_is_a_usage_error(
    run_tests: RunTests, options: list[str], text: str
) -> None:
    result = run_tests(FAILING, "--amqp-inspect", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([text])


def test_missing_packages_are_named(run_tests: RunTests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("pytest_fakeamqp.options"), "find_spec", lambda name: None)
    result = run_tests(FAILING, "--amqp-inspect")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*needs starlette and uvicorn: pip install 'fakeamqp[[]management[]]'"])


def test_the_broker_of_the_session_is_held_for_the_test_that_used_it(
    run_tests: RunTests, waits: Waits
) -> None:
    result = run_tests(
        """
        import os

        def test_uses_it(amqp_broker_session):
            amqp_broker_session.publish("x", routing_key="q")
            assert os.environ["AMQP_URL"] != amqp_broker_session.url

        def test_does_not():
            assert 0
        """,
        "--amqp-inspect",
        "-o",
        "amqp_env=AMQP_URL",
    )
    result.assert_outcomes(failed=2)
    assert waits.count == 1
