"""Tests on a real broker: the proxy that stands for `amqp_broker`, and what such a broker cannot do."""

from __future__ import annotations

import ast
import inspect
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from fakeamqp import FakeAMQPError, Proxy
from fakeamqp.errors import without_login
from fakeamqp.proxy import IMPOSSIBLE

from . import options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fakeamqp.faults import Faults

__all__ = ["RealBroker", "check", "check_needs", "skip"]

_HINTS = {
    "has ended the connection instead of an answer": "if the port expects TLS, the URL begins with amqps://",
    "WRONG_VERSION_NUMBER": "the port speaks no TLS: the URL begins with amqp://",
    "CERTIFICATE_VERIFY_FAILED": "the environment variable SSL_CERT_FILE names the authorities to trust",
}
"""What to do about an error with such a text."""

_FIXTURES = {
    "amqp_clock": "the clock of a real broker cannot be moved",
    "amqp_simulation": "a simulated test has its broker in its event loop",
    "make_amqp_broker": "it makes other brokers; make_amqp_proxy makes proxies in front of the real one",
}
"""Why a fixture needs fakeamqp's own broker."""

_AMQP_QUEUE = {
    "queue": "amqp_queue asks for the messages of a queue over AMQP",
    "publish": "amqp_queue has a method publish",
}
"""What works on a real broker instead, by the member of `amqp_broker`."""


class RealBroker(Proxy):
    """The proxy in front of a real broker that stands for `amqp_broker`.

    What only fakeamqp's own broker can do skips the test, with the reason.
    """

    def __getattr__(self, name: str) -> NoReturn:
        _check_member(name)
        super().__getattr__(name)

    @property
    def faults(self) -> Faults:
        faults = super().faults
        context = faults._context
        context.impossible = _Skipping(context.impossible)
        return faults


class _Skipping(dict[str, str]):
    """Reasons why faults are impossible. Reading one skips the test."""

    def __getitem__(self, name: str) -> NoReturn:
        skip(f"the fault {name!r}", super().__getitem__(name))


def skip(what: str, why: str) -> NoReturn:
    """Skip a test that needs what a real broker cannot do."""
    said = f"{what} needs fakeamqp's own broker, and this test runs on a real one: {why}"
    raise pytest.skip.Exception(said, _use_item_location=True)


def check_needs(item: pytest.Item) -> None:
    """Skip a test that needs fakeamqp's own broker for a fixture, or for what its code says of `amqp_broker`.

    It is skipped before it starts, so that it leaves nothing on the real broker.
    """
    fixtures = getattr(item, "fixturenames", ())
    for name in fixtures:
        if name in _FIXTURES:
            skip(name, _FIXTURES[name])
    if "amqp_broker" in fixtures:
        for name in _members_used(getattr(item, "obj", None)):
            _check_member(name)


def _check_member(name: str) -> None:
    if name in IMPOSSIBLE:
        skip(f"amqp_broker.{name}", "; ".join(filter(None, (IMPOSSIBLE[name], _AMQP_QUEUE.get(name)))))


def _members_used(function: Any) -> Iterator[str]:
    """The members of `amqp_broker` that the code of a test names."""
    try:
        tree = ast.parse(dedent(inspect.getsource(function)))
    except (OSError, SyntaxError, TypeError):  # The code is in no file, or a part of it only.
        return
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="amqp_broker"), attr=name):
                yield name


_ANSWERED: pytest.StashKey[set[str]] = pytest.StashKey()
"""The URLs at which a broker has accepted a login."""


def check(config: pytest.Config, url: str) -> None:
    """Fail the test if the broker at the URL that the options name does not accept a client."""
    from fakeamqp.portable import PortableRequests, ToURL

    answered = config.stash.setdefault(_ANSWERED, set())
    if url in answered:
        return
    said = ""
    try:
        client = PortableRequests(ToURL(url))
        client.open()
        client.close()
    except FakeAMQPError as error:
        said = str(error)
    if said:
        hints = [hint for text, hint in _HINTS.items() if text in said]
        given = options.given_real_url(config, url)
        pytest.fail("; ".join([f"{given}: {without_login(url)}: {said}", *hints]), pytrace=False)
    answered.add(url)
