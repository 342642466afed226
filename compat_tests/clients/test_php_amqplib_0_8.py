"""php-amqplib over AMQP 0-8, which it speaks where a constant says so."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fakeamqp import Broker

SECONDS = 40

SCRIPT = Path(__file__).with_name("php_amqplib") / "round_trip.php"


def missing() -> bool:
    if shutil.which("php") is None:
        return True
    found = ["php", "-r", "exit((int) !stream_resolve_include_path('PhpAmqpLib/autoload.php'));"]
    return subprocess.run(found, capture_output=True, timeout=SECONDS, check=False).returncode != 0


@pytest.mark.skipif(missing(), reason="needs php-amqplib: Debian package php-amqplib")
def test_php_amqplib(broker: Broker) -> None:
    done = subprocess.run(
        ["php", str(SCRIPT), broker.host, str(broker.port)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
