"""`--amqp-inspect` holds the brokers of a failed test open."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import pytest

from compat_tests.management.inspector_client import Page
from compat_tests.plugin.conftest import WriteTests
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
        assert Page.of(self.brokers[0]).ask("end-hold") is None

    def wait(self) -> None:
        self.count += 1
        self.happens()
        assert self.goes_on


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    waits = Waits()
    inspecting = import_module("pytest_fakeamqp.inspecting")
    monkeypatch.setattr(inspecting, "Event", waits)

    def brokers(item: pytest.Item) -> list[Broker]:
        waits.brokers = remembered(item)
        return waits.brokers

    remembered = inspecting.endpoints.brokers
    monkeypatch.setattr(inspecting.endpoints, "brokers", brokers)
    return waits


def test_a_failed_test_is_held_until_the_page_lets_it_go(write_tests: WriteTests, waits: Waits) -> None:
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
    result = write_tests(FAILING).run("--amqp-inspect", passed=1, failed=1)
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


def test_ctrl_c_goes_on_with_the_next_test(write_tests: WriteTests, waits: Waits) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    waits.happens = interrupt
    write_tests(FAILING).run("--amqp-inspect", passed=1, failed=1, said=["The test goes on."])


def test_every_broker_of_the_test_has_its_page(write_tests: WriteTests, waits: Waits) -> None:
    write_tests("""
        def test_two(make_amqp_broker):
            make_amqp_broker(), make_amqp_broker()
            assert 0
    """).run(
        "--amqp-inspect", said=["*Its broker of 127.0.0.1:*: http*", "*Its broker of 127.0.0.1:*: http*"]
    )


def test_only_failed_tests_with_a_broker_and_the_option_are_held(
    write_tests: WriteTests, waits: Waits
) -> None:
    write_tests("def test_fails(): assert 0").run("--amqp-inspect", failed=1)
    skipped = "def test_skips(amqp_broker): pytest.skip('no')"
    write_tests(skipped).run("--amqp-inspect", skipped=1)
    expected = "@pytest.mark.xfail\ndef test_is_known(amqp_broker): assert 0"
    write_tests(expected).run("--amqp-inspect", xfailed=1)
    write_tests(FAILING).run(passed=1, failed=1)
    assert waits.count == 0


def test_a_fault_that_never_happened_holds_its_test(write_tests: WriteTests, waits: Waits) -> None:
    unused = "def test_fails(amqp_faults): amqp_faults.on('basic.publish').drop()"
    write_tests(unused).run("--amqp-inspect", failed=1)
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
    write_tests: WriteTests, options: list[str], text: str
) -> None:
    write_tests(FAILING).run("--amqp-inspect", *options, usage_error=[text])


def test_missing_packages_are_named(write_tests: WriteTests, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("pytest_fakeamqp.options"), "find_spec", lambda name: None)
    write_tests(FAILING).run(
        "--amqp-inspect", usage_error=["*needs starlette and uvicorn: pip install 'fakeamqp[[]management[]]'"]
    )


def test_the_broker_of_the_session_is_held_for_the_test_that_used_it(
    write_tests: WriteTests, waits: Waits
) -> None:
    write_tests("""
        import os

        def test_uses_it(amqp_broker_session):
            amqp_broker_session.publish("x", routing_key="q")
            assert os.environ["AMQP_URL"] != amqp_broker_session.url

        def test_does_not():
            assert 0
    """).run("--amqp-inspect", "-o", "amqp_env=AMQP_URL", failed=2)
    assert waits.count == 1
