"""Sessions of clients that are programs: the tools of rabbitmq-c, php-amqplib, and amqplib of npm."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).parent
SECONDS = 60


def _run(*command: str, given: bytes = b"", environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        input=given,
        capture_output=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout.decode()}{done.stderr.decode()}")


def rabbitmq_c(url: str) -> None:
    """Each tool is a connection of its own."""
    _run("amqp-declare-queue", "--url", url, "-q", "c-orders", "-d")
    for body in (b"one", b"two"):
        _run("amqp-publish", "--url", url, "-r", "c-orders", "-p", "-H", "token: abc", given=body)
    _run("amqp-get", "--url", url, "-q", "c-orders")
    _run("amqp-consume", "--url", url, "-q", "c-orders", "-c", "1", "cat")
    _run("amqp-delete-queue", "--url", url, "-q", "c-orders")


def php_amqplib(url: str) -> None:
    """Confirms, a prefetch, and a transaction on a second channel."""
    parts = urlsplit(url)
    _run("php", str(HERE / "session.php"), str(parts.hostname), str(parts.port))


def npm_amqplib(url: str) -> None:
    """Confirms, a message that is requeued, and an error of a channel."""
    from compat_tests.docs.test_recipes import node_modules

    _run("node", str(HERE / "session.js"), url, environment={"NODE_PATH": str(node_modules())})


SESSIONS: dict[str, Callable[[str], None]] = {
    "rabbitmq-c": rabbitmq_c,
    "php-amqplib": php_amqplib,
    "npm-amqplib": npm_amqplib,
}
