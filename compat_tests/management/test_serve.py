"""`fakeamqp serve --management-port` serves the HTTP API, and ends it with the broker."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

from compat_tests.management.client import Api


def test_serve_prints_the_api_address_and_stops_the_api_on_sigterm():
    command = [sys.executable, "-m", "fakeamqp", "serve", "--port", "0", "--management-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serve:
        first, second, third = (serve.stdout.readline() for _ in range(3))
        found = re.fullmatch(r"management API on (http://guest:guest@127\.0\.0\.1:\d+)/api/\n", first)
        assert found, first
        assert re.fullmatch(r"inspector on http://127\.0\.0\.1:\d+/inspector/#token=\S+\n", second)
        assert third.startswith("listening on amqp://")
        assert Api(found[1]).get("overview")["product_name"] == "RabbitMQ"
        serve.send_signal(signal.SIGTERM)
        assert serve.wait(30) == 0
    with pytest.raises(ConnectionRefusedError):
        Api(found[1]).get("overview")
