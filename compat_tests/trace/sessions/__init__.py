"""Sessions of clients with a real RabbitMQ, recorded through a proxy and kept as data in `recorded`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fakeamqp import Proxy, Recording

__all__ = ["RECORDED", "record", "sessions"]

RECORDED = Path(__file__).parent / "recorded"

REDACTED = {
    "pika-blocking": ("body", "headers.authorization"),
    # Where a task comes from has the name of the machine.
    "celery": ("body", "headers.origin"),
}
_TOKEN = ("headers.token",)


def sessions() -> dict[str, Callable[[str], None]]:
    """What each client does, by its name: functions of the URL of a broker."""
    from compat_tests.trace.sessions import programs, python_clients

    return {**python_clients.SESSIONS, **programs.SESSIONS}


def record(name: str, url: str, path: Path) -> None:
    """Record a session with the broker at a URL, through a proxy."""
    with Proxy(url, record=Recording(path, redact=REDACTED.get(name, _TOKEN))) as proxy:
        sessions()[name](proxy.url)
        proxy.wait_for(lambda: not proxy.connections, timeout=20)
