"""`--amqp-inspect`: holds the brokers of a failed test open, and prints the addresses of their pages."""

from __future__ import annotations

from contextlib import nullcontext
from threading import Event
from typing import TYPE_CHECKING, Any

from . import endpoints, failures, session_broker

if TYPE_CHECKING:
    import pytest

__all__ = ["hold"]


def hold(item: pytest.Item, problem: pytest.ExceptionInfo[BaseException]) -> None:
    """Wait until the user goes on: by Ctrl-C in the terminal, or on the page of any of the brokers.

    The fixtures of the test, and so its brokers and clients, stay as they are meanwhile.
    """
    held = [
        broker
        for broker in endpoints.brokers(item)
        if broker.running
        and broker._management is not None
        and not session_broker.is_idle_bystander(item, broker)
    ]
    reporter: Any = item.config.pluginmanager.getplugin("terminalreporter")
    if not held or reporter is None:
        return
    capture: Any = item.config.pluginmanager.getplugin("capturemanager")
    released = Event()
    for broker in held:
        assert broker._management is not None
        count = 0 if broker._recorder is None else broker._recorder.count
        broker._management.hold_open(item.nodeid, released, failures.failure_of(item, problem, count))
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        try:
            reporter.write_line("")
            reporter.section(f"AMQP inspector: {item.nodeid}", "-")
            reporter.write_line(problem.exconly(tryshort=True))
            for broker in held:
                of = "" if len(held) == 1 else f" of {endpoints.named(broker)}"
                reporter.write_line(
                    f"The failed test is held open. Its broker{of}: {broker.admin.inspector_url}"
                )
            reporter.write_line("Ctrl-C, or the button on the page, goes on with the next test.", flush=True)
            released.wait()
        except KeyboardInterrupt:
            reporter.write_line("\nThe test goes on.")
        finally:
            for broker in held:
                assert broker._management is not None
                broker._management.hold_open("", None)
