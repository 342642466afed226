"""Who may use the control interface, and from where."""

from __future__ import annotations

from base64 import b64encode

import pytest

from compat_tests.management.control_client import ControlClient
from fakeamqp import Broker

JSON = {"content-type": "application/json"}


def basic(name: str, password: str) -> dict[str, str]:
    return {**JSON, "authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}


@pytest.fixture
def control(broker: Broker) -> ControlClient:
    return ControlClient(broker.admin.control_url)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": "Bearer"}, 401),
        ({"authorization": "Basic !"}, 401),
        (basic("guest", "wrong"), 401),
        (basic("carla", "secret"), 403),
        (basic("guest", "guest"), 204),
    ],
)
def test_routes_need_the_token_or_an_administrator(
    control: ControlClient, broker: Broker, headers: dict[str, str], status: int
):
    broker.admin.add_user("carla", "secret", tags=["management"])
    broker.load_definitions({"queues": [{"name": "orders"}]})
    found, answer_headers, body = control.send("POST", "/reset", b"{}", {**JSON, **headers})
    assert found == status, body
    assert broker.queue("orders").exists is (status != 204)
    # A browser that remembered a login would send it with requests of other sites.
    assert "www-authenticate" not in answer_headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "localhost.evil.example:80"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"host": "localhost:1234"}, 200),
        ({"host": "[::1]:1234"}, 200),
    ],
)
def test_requests_of_other_sites_are_refused_even_with_the_token(
    control: ControlClient, headers: dict[str, str], status: int
):
    for path in ("/faults", "/openapi.json"):
        found, answer_headers, _ = control.send("GET", path, None, {**control.headers, **headers})
        assert found == status
        assert "access-control-allow-origin" not in answer_headers


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{}", {"content-type": "text/plain"}, 415),
        (b"{}", {"content-type": "application/x-www-form-urlencoded"}, 415),
        (b"{", {}, 400),
        (b"[]", {}, 400),
        (b'{"durable": NaN}', {}, 400),
        (b"[" * 100_000, {}, 400),
        (b" " * 10_000_001, {}, 400),
        (b"", {"content-type": "text/plain"}, 204),
    ],
)
def test_body_other_than_a_bounded_json_object_is_refused(
    control: ControlClient, body: bytes, headers: dict[str, str], status: int
):
    assert control.send("POST", "/restart", body, {**control.headers, **headers})[0] == status


def test_unknown_path_or_method_is_refused_with_what_there_is(control: ControlClient):
    status, _, body = control.send("GET", "/fautls", None, control.headers)
    assert status == 404 and b"did you mean '/control/v1/faults'" in body
    status, _, body = control.send("GET", "/../v2/faults", None, control.headers)
    assert status == 404
    status, headers, body = control.send("PUT", "/faults", b"{}", control.headers)
    assert (status, headers["allow"]) == (405, "GET, POST, DELETE")
    assert b"/control/v1/faults takes GET, POST, DELETE, not PUT" in body


def test_each_broker_has_a_token_of_its_own_which_restart_and_reset_keep(broker: Broker):
    address = broker.admin.control_url
    broker.restart()
    broker.reset()
    assert broker.admin.control_url == address
    with Broker(control=True) as other:
        assert ControlClient(other.admin.control_url).token != ControlClient(address).token
