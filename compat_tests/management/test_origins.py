"""The whole port refuses requests of pages of other sites, and names that another site could have."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from compat_tests.management.client import Api
from compat_tests.tools.matrix import cases
from fakeamqp import Broker, Personality
from fakeamqp.management.errors import Refused
from fakeamqp.management.origins import OwnPages

FORM = {"content-type": "application/x-www-form-urlencoded"}
PUBLISH = {"routing_key": "orders", "payload": "forged", "payload_encoding": "string", "properties": {}}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(management=True, management_hosts=["rabbit.internal"]) as broker:
        broker.load_definitions({"queues": [{"name": "orders", "durable": True}]})
        yield broker


FOREIGN: list[tuple[dict[str, str], int]] = [
    ({"host": "evil.example"}, 421),
    ({"host": "evil"}, 421),
    ({"host": ""}, 421),
    ({"host": "127.0.0.1.evil.example:15672"}, 421),
    ({"host": "rabbit.internal.evil.example"}, 421),
    ({"origin": "http://evil.example"}, 403),
    ({"origin": "http://localhost:1"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": "http://["}, 403),
    ({"sec-fetch-site": "cross-site"}, 403),
    ({"sec-fetch-site": "same-site"}, 403),
    ({"host": "evil.example", "origin": "http://evil.example", "sec-fetch-site": "same-origin"}, 421),
]


@pytest.mark.parametrize(("headers", "status"), FOREIGN)
def test_requests_of_other_sites_are_refused_for_any_path_and_login(
    broker: Broker, api: Api, headers: dict[str, str], status: int
):
    for asked in (api, api.log_out()):
        for method, path, body in (
            ("POST", "exchanges/%2F/amq.default/publish", PUBLISH),
            ("PUT", "queues/%2F/new", {}),
            ("GET", "definitions", None),
            ("GET", "nowhere", None),
        ):
            reply = asked.request(method, path, body, {**FORM, **headers})
            assert reply.status == status, path
            assert {"error", "reason"} == set(reply.json)
            assert "access-control-allow-origin" not in reply.headers
    assert not broker.queue("orders").ready
    assert [each.name for each in broker.queues] == ["orders"]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "localhost:15672"},
        {"host": "LOCALHOST."},
        {"host": "rabbit.localhost:15672"},
        {"host": "[::1]:15672"},
        {"host": "192.168.1.7:15672"},
        {"host": "Rabbit.Internal:15672"},
        {"host": socket.gethostname()},
        {"host": "localhost:15672", "origin": "http://localhost:15672", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-mode": "cors"},  # Node's fetch
    ],
)
def test_requests_of_tools_and_own_pages_are_accepted(api: Api, headers: dict[str, str]):
    assert api.request("GET", "definitions", headers=headers).status == 200
    assert api.request("PUT", "queues/%2F/orders", {"durable": True}, {**FORM, **headers}).status == 204


def test_a_request_of_http_1_0_needs_no_host(broker: Broker):
    with socket.create_connection((broker.host, broker.admin.management_port)) as client:
        client.sendall(b"GET /api/whoami HTTP/1.0\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 401"


NAMES = {  # Whether they are taken, asked by the loopback address and by another one.
    None: (True, True),
    "": (False, False),
    "rabbit:15672": (False, True),
    "RABBIT.": (False, True),
    "rabbit.evil": (False, False),
    "rabbit.internal:1": (True, True),
    "x.localhost": (True, True),
    "localhost.": (True, True),
    "[fe80::1%eth0]:80": (True, True),
    "10.0.0.1": (True, True),
    "10.0.0.256": (False, False),
}


def test_host_name_is_accepted_if_no_site_can_own_it():
    pages = OwnPages(lambda *_: None, hosts=["Rabbit.Internal:5672"], public=())  # type: ignore[arg-type]
    with cases() as case:
        for name, taken in NAMES.items():
            for server, expected in zip(("127.0.0.1", "192.0.2.1"), taken, strict=True):
                with case(name, server), nullcontext() if expected else pytest.raises(Refused, match="421"):
                    pages._check_host(name, (server, 15672))


def test_plain_host_name_is_accepted_from_another_machine_only():
    addresses = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    outward = [each for each in map(str, addresses) if not each.startswith("127.")]
    if not outward:
        pytest.skip("this machine has only loopback addresses")
    with Broker(
        "0.0.0.0", management=True, personality=Personality("rabbitmq-4.3").with_(loopback_users=())
    ) as broker:
        for host, status in ((outward[0], 200), ("127.0.0.1", 421)):
            api = Api(f"http://guest:guest@{host}:{broker.admin.management_port}")
            assert api.request("GET", "whoami", headers={"host": "rabbit:15672"}).status == status
        assert (
            Api(f"http://guest:guest@{outward[0]}:{broker.admin.management_port}")
            .request("GET", "whoami", headers={"host": "rabbit.evil.example"})
            .status
            == 421
        )
