"""amqplib, a client of AMQP 0-8."""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from fakeamqp import Broker

SECONDS = 40

WORK = Path(__file__).with_name("amqplib") / "work.py"


@lru_cache(maxsize=1)
def interpreter() -> str | None:
    """A Python with the client: Debian's package is for the system's own."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        asked = [candidate, "-c", "import amqplib.client_0_8"]
        try:
            if subprocess.run(asked, capture_output=True, timeout=SECONDS, check=False).returncode == 0:
                return candidate
        except OSError:
            continue
    return None


pytestmark = pytest.mark.skipif(
    interpreter() is None, reason="needs amqplib for Python 3: Debian package python3-amqplib"
)


@pytest.mark.parametrize("what", ["round_trip", "get_reject_recover", "transactions", "errors"])
def test_amqplib(what: str, broker: Broker) -> None:
    run(broker, what)


def test_amqplib_round_trip_succeeds_with_checked_access_tickets() -> None:
    """The client asks for a ticket, and shows it by itself from then on."""
    with Broker(seed=1, personality="spec") as broker:
        run(broker, "round_trip")
        assert broker.admin.failures == ()


def test_a_redirected_connection(broker: Broker) -> None:
    with Broker(seed=2) as elsewhere:
        with broker.faults.redirect(f"{elsewhere.host}:{elsewhere.port}"):
            run(broker, "round_trip")
        assert elsewhere.queue("orders").exists
        assert elsewhere.admin.failures == ()
    assert not broker.queue("orders").exists


def run(broker: Broker, what: str) -> None:
    found = interpreter()
    assert found
    done = subprocess.run(
        [found, str(WORK), f"{broker.host}:{broker.port}", what],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
