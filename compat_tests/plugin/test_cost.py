"""A test run that does not use the broker shall not pay for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

CLIENTS = ("aio_pika", "amqp", "celery", "kombu", "pika", "pyspark", "trustme")
HEAVY = (*CLIENTS, "asyncio", "fakeamqp.broker", "http", "ssl")


def test_importing_the_plugin_imports_no_heavy_module() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import pytest_fakeamqp;"
        "print('\\n'.join(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    added = done.stdout.split()
    assert "pytest_fakeamqp" in added
    assert not set(added) & set(HEAVY)


def test_a_run_without_our_fixtures_imports_no_broker_and_no_client(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import sys
        from pathlib import Path

        def test_it():
            Path("imported").write_text(" ".join(sys.modules), "utf-8")
        """
    )

    def imported(*options: str) -> set[str]:
        pytester.runpytest_subprocess(*options).assert_outcomes(passed=1)
        return set((pytester.path / "imported").read_text("utf-8").split())

    without = imported()  # From Python 3.14 on, pytest itself imports asyncio.
    added = imported("-p", "fakeamqp") - without
    assert "pytest_fakeamqp" in added
    assert not added & set(HEAVY)


def test_plugin_works_without_aio_pika_and_pytest_asyncio(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import sys

        def test_it(pika_channel):
            pika_channel.queue_declare("orders")
            assert "aio_pika" not in sys.modules
            assert "pytest_asyncio" not in sys.modules
        """
    )
    pytester.runpytest_subprocess("-p", "fakeamqp").assert_outcomes(passed=1)
