"""Who may log in from where (measured on RabbitMQ 4.3.6)."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from starlette.requests import Request

from compat_tests.management.inspector_client import inspector_of
from fakeamqp import Broker, Personality
from fakeamqp.management.access import authenticate
from fakeamqp.management.context import Management
from fakeamqp.management.control.access import check_login
from fakeamqp.management.errors import Refused

ELSEWHERE = "192.0.2.7"
GUEST = f"Basic {b64encode(b'guest:guest').decode()}"
WRONG = f"Basic {b64encode(b'guest:wrong').decode()}"


def management(broker: Broker) -> Management:
    companion: Any = broker._management
    known: Management = companion.management
    return known


def test_guest_may_log_in_from_loopback_addresses_only():
    with Broker(management=True) as broker:
        assert authenticate(management(broker), GUEST, "127.0.0.1").name == "guest"
        with pytest.raises(Refused) as refused:
            authenticate(management(broker), GUEST, ELSEWHERE)
        assert (refused.value.status, refused.value.reason) == (401, "User can only log in via localhost")
        with pytest.raises(Refused) as refused:
            authenticate(management(broker), WRONG, ELSEWHERE)
        assert refused.value.reason == "Not_Authorized"


@pytest.mark.parametrize("login", [None, "Bearer token"])
def test_request_without_credentials_is_refused_with_a_basic_challenge(login):
    with Broker(management=True) as broker:
        with pytest.raises(Refused) as refused:
            authenticate(management(broker), login, "127.0.0.1")
        assert (refused.value.status, refused.value.error, refused.value.reason) == (
            401,
            "not_authorized",
            None,
        )
        assert refused.value.headers == {"www-authenticate": 'Basic realm="RabbitMQ Management"'}


def test_guest_may_log_in_from_any_address_without_loopback_users():
    with Broker(management=True, personality=Personality("rabbitmq-4.3").with_(loopback_users=())) as broker:
        assert authenticate(management(broker), GUEST, ELSEWHERE).name == "guest"


def request_of(host: str, login: str) -> Request:
    headers = [(b"authorization", login.encode())]
    return Request({"type": "http", "headers": headers, "client": (host, 49152)})


def test_loopback_rule_applies_to_inspector_logins_but_not_to_its_token():
    with Broker(management=True) as broker:
        control = inspector_of(broker).control
        check_login(request_of("127.0.0.1", GUEST), control)
        with pytest.raises(Refused, match="from loopback addresses only; the address with the token"):
            check_login(request_of(ELSEWHERE, GUEST), control)
        check_login(request_of(ELSEWHERE, f"Bearer {control.token}"), control)
    with Broker(management=True, personality=Personality("rabbitmq-4.3").with_(loopback_users=())) as broker:
        check_login(request_of(ELSEWHERE, GUEST), inspector_of(broker).control)
