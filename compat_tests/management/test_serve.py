"""`fakeamqp serve` serves the HTTP API and the control interface, and ends them with the broker."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pika
import pytest

from compat_tests.management.client import Api
from compat_tests.management.control_client import ControlClient, Refusal
from fakeamqp import Broker


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


def test_serve_prints_the_control_address_and_its_client_moves_the_clock():
    command = [sys.executable, "-m", "fakeamqp", "serve", "--port", "0", "--control-port", "0"]
    with subprocess.Popen([*command, "--clock", "virtual"], stdout=subprocess.PIPE, text=True) as serve:
        first, second, third = (serve.stdout.readline() for _ in range(3))
        found = re.fullmatch(r"control interface on (http://127\.0\.0\.1:\d+/control/v1#token=\S+)\n", first)
        assert found, first
        assert re.fullmatch(r"inspector on http://127\.0\.0\.1:\d+/inspector/#token=\S+\n", second)
        assert third.startswith("listening on amqp://")
        control = ControlClient(found[1])
        control.post("/clock/advance", seconds=3600)
        assert control.get("/clock")["elapsed"] == 3600
        control.post("/publish", body="x", routing_key="orders")
        with pytest.raises(Refusal, match=r"(?s)^409 NotPublished: .*include_own=True counts"):
            control.post("/expect_published", timeout=0)
        serve.send_signal(signal.SIGTERM)
        assert serve.wait(30) == 0


def test_proxy_command_prints_the_control_address_and_its_client_adds_a_fault():
    command = [sys.executable, "-m", "fakeamqp", "proxy", "--control-port", "0", "--to"]
    with (
        Broker() as broker,
        subprocess.Popen([*command, broker.url], stdout=subprocess.PIPE, text=True) as proxy,
    ):
        try:
            address, inspector, url = (proxy.stdout.readline().split()[-1] for _ in range(3))
            assert "/inspector/#token=" in inspector
            ControlClient(address).post("/faults", on="basic.publish", nack=True)
            with pika.BlockingConnection(pika.URLParameters(url)) as connection:
                channel = connection.channel()
                channel.confirm_delivery()
                with pytest.raises(pika.exceptions.NackError):
                    channel.basic_publish("", "orders", b"one")
        finally:
            proxy.terminate()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--control-port", "1", "--management-port", "2"], "share one port; give one of them"),
        (["--clock", "virtual"], "add a --clock-rate, such as 60, or a --control-port"),
        (["--control-port", "70000"], "'70000' is not a port"),
    ],
)
def test_serve_refuses_options_about_control_that_contradict_each_other(options: list[str], said: str):
    command = [sys.executable, "-m", "fakeamqp", "serve", "--port", "0", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and said in done.stderr
