"""`Broker.url`: the address, the virtual host and an account whose password is known."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pika
import pytest

from fakeamqp import Broker, BrokerError
from fakeamqp.model.access import User


def hashed(password: str, algorithm: str = "sha256", salt: bytes = b"\x90\x8d\xc6\x0a") -> str:
    """The hash of a password as RabbitMQ exports it; its documentation has the one of "test12"."""
    digest = hashlib.new(algorithm, salt + password.encode()).digest()
    return base64.b64encode(salt + digest).decode()


def exported(**users: str) -> dict[str, Any]:
    """Definitions with accounts and the hashes of their passwords."""
    return {
        "users": [
            {
                "name": name,
                "password_hash": password_hash,
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": ["administrator"],
                "limits": {},
            }
            for name, password_hash in users.items()
        ],
        "permissions": [
            {"user": name, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"} for name in users
        ],
    }


def login(broker: Broker) -> str:
    """The login of the broker's URL, with which a client must get in."""
    pika.BlockingConnection(pika.URLParameters(broker.url)).close()
    return broker.url.partition("//")[2].partition("@")[0]


def test_hashes_are_those_of_rabbitmq():
    assert hashed("test12") == "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"


def test_the_url_names_the_virtual_host_in_full():
    # Without it amqp-tools, amqplib and RabbitMQ's own clients for Erlang ask for the virtual host "".
    with Broker() as broker:
        assert broker.url == f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F"


def test_the_password_of_guest_is_known_by_its_hash():
    with Broker(definitions=exported(guest=hashed("guest"))) as broker:
        assert login(broker) == "guest:guest"
        broker.reset()
        assert login(broker) == "guest:guest"
        broker.restart(durable=False)
        assert login(broker) == "guest:guest"


def test_password_of_guest_is_known_from_definitions_loaded_later():
    with Broker() as broker:
        broker.load_definitions(exported(guest=hashed("guest")))
        assert login(broker) == "guest:guest"


def test_password_of_guest_is_known_after_definitions_replace_its_hash():
    with Broker(definitions=exported(guest=hashed("something else"))) as broker:
        broker.load_definitions(exported(guest=hashed("guest")))
        assert login(broker) == "guest:guest"


def test_url_contains_the_password_given_by_the_test():
    with Broker(users={"app": "s3cret"}, definitions=exported(app=hashed("s3cret"))) as broker:
        assert login(broker) == "app:s3cret"
        broker.reset()
        assert login(broker) == "app:s3cret"


def test_url_prefers_an_account_with_a_known_password():
    definitions = exported(admin=hashed("?"), guest=hashed("?"), app=hashed("s3cret"))
    with Broker(users={"guest": "wrong", "app": "s3cret"}, definitions=definitions) as broker:
        assert login(broker) == "app:s3cret"


@pytest.mark.parametrize("users", [None, {"guest": "not this"}])
def test_url_without_a_known_password_is_an_error_with_a_remedy(users):
    with Broker(users=users, definitions=exported(guest=hashed("production"))) as broker:
        with pytest.raises(BrokerError) as problem:
            _ = broker.url
        assert str(problem.value) == (
            "the broker does not know the password of user 'guest': the definitions contain its hash only. "
            "Tell it with Broker(users={'guest': '...'}, definitions=...), or add an account for the test "
            "with broker.admin.add_user('test', '...')"
        )
        broker.admin.add_user("test", "it")
        assert login(broker) == "test:it"


def test_given_password_that_contradicts_the_hash_is_refused():
    with Broker(users={"app": "guest"}, definitions=exported(app=hashed("production"))) as broker:
        credentials = pika.PlainCredentials("app", "guest")
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            pika.BlockingConnection(
                pika.ConnectionParameters(broker.host, broker.port, credentials=credentials)
            )


def test_url_names_an_account_without_a_password():
    with Broker(users=[User("CN=client")]) as broker:
        assert broker.url == f"amqp://CN%3Dclient:@127.0.0.1:{broker.port}/%2F"
    with Broker(users={}) as broker:
        assert broker.url == f"amqp://127.0.0.1:{broker.port}/%2F"


def test_hash_of_a_known_password_is_exported_unchanged():
    given = exported(guest=hashed("guest"))["users"]
    assert Broker(definitions={"users": given}).definitions()["users"] == given
