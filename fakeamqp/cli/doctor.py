"""The command `doctor`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from fakeamqp.errors import FakeAMQPError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIBRARIES = (
    ("pika", "pip install 'fakeamqp[pika]'"),
    ("aio-pika", "pip install 'fakeamqp[aio-pika]'"),
    ("amqp", "pip install amqp"),
    ("kombu", "pip install kombu"),
    ("celery", "pip install celery"),
    ("amqpstorm", "pip install amqpstorm"),
    ("pytest", "pip install 'fakeamqp[pytest]'"),
    ("pytest-asyncio", "pip install pytest-asyncio"),
    ("anyio", "pip install anyio"),
    ("trustme", "pip install 'fakeamqp[tls]'"),
    ("pyarrow", "pip install 'fakeamqp[trace]'"),
    ("pyspark", "pip install 'fakeamqp[spark]'"),
)


def add(commands: Any) -> None:
    """Add the command."""
    doctor = commands.add_parser("doctor", help="check whether brokers and clients can run on this machine")
    doctor.set_defaults(run=_doctor)


def _doctor(_: argparse.Namespace) -> int:
    findings = list(_findings())
    width = max(len(subject) for _, subject, _ in findings)
    for verdict, subject, words in findings:
        print(f"{verdict:<8} {subject:<{width}}  {words}")
    failed = [subject for verdict, subject, _ in findings if verdict == "failed"]
    print()
    if failed:
        print(f"Not ready: {', '.join(failed)}.")
        return 1
    print("Ready: brokers can run here. Missing packages are optional.")
    return 0


def _findings() -> Iterator[tuple[str, str, str]]:
    """Tuples of verdict ("ok", "missing" or "failed"), subject, and details."""
    running = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info >= (3, 10):  # noqa: UP036 - a checkout can be run without pip's own check
        yield "ok", "Python", f"{running} at {sys.executable}"
    else:
        yield "failed", "Python", f"{running} is too old; 3.10 or later is needed"
    yield "ok", "fakeamqp", version("fakeamqp") or "not installed; imported from a folder"
    yield _loopback("IPv4 loopback", "127.0.0.1", "failed")
    yield _loopback("IPv6 loopback", "::1", "missing")
    yield _broker_answers()
    yield _tls_library()
    for name, remedy in _LIBRARIES:
        installed = version(name)
        yield ("ok", name, installed) if installed else ("missing", name, f"not installed: {remedy}")
    yield _java()


def _java() -> tuple[str, str, str]:
    try:
        from fakeamqp.spark.errors import SparkError
        from fakeamqp.spark.session.installation import find_java
    except ImportError as error:  # Not on Windows.
        return "missing", "Java", str(error)
    try:
        path, version = find_java()
    except SparkError as error:
        return "missing", "Java", str(error)
    return "ok", "Java", f"{version} at {path}"


def _loopback(subject: str, host: str, otherwise: str) -> tuple[str, str, str]:
    import socket

    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.bind((host, 0))
            return "ok", subject, f"can listen on {host}"
    except OSError as error:
        return otherwise, subject, f"cannot listen on {host}: {error.strerror or error}"


def _broker_answers() -> tuple[str, str, str]:
    import socket

    from fakeamqp import Broker

    try:
        with Broker() as broker, socket.create_connection((broker.host, broker.port), timeout=10) as client:
            client.sendall(b"AMQP\x00\x00\x09\x01")
            answer = client.recv(7)
    except (FakeAMQPError, OSError) as error:
        return "failed", "broker", f"does not run: {error}"
    if answer[:1] != b"\x01":  # A method frame: connection.start.
        return "failed", "broker", f"answers the protocol header with {answer!r}"
    return "ok", "broker", "starts, answers and stops"


def _tls_library() -> tuple[str, str, str]:
    try:
        import ssl
    except ImportError:
        return "missing", "TLS", "this Python was built without the ssl module"
    return "ok", "TLS", ssl.OPENSSL_VERSION


def version(distribution: str) -> str | None:
    """The installed version of a distribution; None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
