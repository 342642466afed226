"""Clients that open a connection are sent elsewhere."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_10 import Client
from compat_tests.unit.faults.amqp_0_10.server import FaultServer
from fakeamqp.faults import FaultError, Faults, UnusedFault
from fakeamqp.protocols.amqp_0_10.codec import controls as c


def _opening(server: FaultServer) -> Client:
    client = server.dial()
    client.begin()
    client.login()
    client.send(c.ConnectionTuneOk())
    return client


def test_redirected_client_gets_connection_redirect_unless_it_insists(server: FaultServer) -> None:
    redirection = server.faults.redirect("other.example:5673", known_hosts=["third.example"])
    open_ = c.ConnectionOpen(virtual_host="/")
    redirect = _opening(server).call(open_, c.ConnectionRedirect)
    assert (redirect.host, redirect.known_hosts) == ("other.example:5673", ["third.example"])
    assert redirection.hits == 1
    assert str(redirection).startswith("clients that open a connection are redirected to other.example:5673")
    _opening(server).call(c.ConnectionOpen(virtual_host="/", insist=True), c.ConnectionOpenOk)
    redirection.remove()
    _opening(server).call(open_, c.ConnectionOpenOk)
    assert redirection.hits == 1


def test_latest_of_several_redirections_applies(server: FaultServer) -> None:
    server.faults.redirect("one")
    two = server.faults.redirect("two")
    open_ = c.ConnectionOpen(virtual_host="/")
    assert _opening(server).call(open_, c.ConnectionRedirect).host == "two"
    two.remove()
    assert _opening(server).call(open_, c.ConnectionRedirect).host == "one"
    server.faults.clear()
    _opening(server).call(open_, c.ConnectionOpenOk)


def test_verify_reports_an_unused_redirection(faults: Faults) -> None:
    faults.redirect("other.example")
    with pytest.raises(UnusedFault, match=r"redirected to other\.example"):
        faults.verify()


@pytest.mark.parametrize("host", ["", "x" * 256, 5672])
def test_redirection_to_an_invalid_host_is_an_error(faults: Faults, host: str) -> None:
    with pytest.raises(FaultError, match="named by a str"):
        faults.redirect(host)
    assert not faults.rules
