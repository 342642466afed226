"""connection.open: redirection, insist, known hosts, and the paths of virtual hosts."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from fakeamqp.model.state import Redirect
from fakeamqp.protocols.amqp_0_9.codec import methods as m, version_0_8
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared

rule = pytest.mark.rule


def tuned(server: Server) -> Client:
    """A client that has yet to open a virtual host."""
    client = server.connect()
    client.send_bytes(client.protocol_header).expect(shared.ConnectionStart, 0)
    client.login().expect(shared.ConnectionTune, 0)
    return client.send(m.ConnectionTuneOk(channel_max=2047, frame_max=131072, heartbeat=0), 0)


def opened(client: Client, **fields: object) -> m.ConnectionOpenOk:
    """Open a virtual host and read the answer as 0-9 has it."""
    client.send(m.ConnectionOpen(**{"virtual_host": "/", **fields}), 0)  # type: ignore[arg-type]
    frame = client.take_frame()
    assert isinstance(frame.method, shared.ConnectionOpenOk)
    return m.ConnectionOpenOk.decode(frame.payload, client.grammar)


def redirected(server: Server) -> tuple[Client, m.ConnectionRedirect]:
    client = tuned(server)
    return client, client.call(m.ConnectionOpen(virtual_host="/"), m.ConnectionRedirect, 0)


@rule("0-9/connection/grammar#redirect", "0-9/connection.redirect/instead-of-open-ok")
@rule("0-9/connection.redirect/host-format", "0-9/domain.known-hosts/use")
@pytest.mark.parametrize("host", ["127.0.0.1:5673", "localhost"])
def test_connection_open_is_answered_with_redirect_host_and_known_hosts(server: Server, host: str) -> None:
    server.state.redirect = Redirect(host, ("third.example", "fourth.example:5673"))
    client, redirect = redirected(server)
    assert (redirect.host, redirect.known_hosts) == (host, "third.example,fourth.example:5673")
    client.expect_nothing()
    assert not server.state.connections
    assert not client.closed


@rule("0-9/connection.redirect/usage")
def test_redirected_client_may_close_or_drop_its_connection(server: Server) -> None:
    server.state.redirect = Redirect("elsewhere")
    client, _ = redirected(server)
    client.perform(shared.ConnectionClose(reply_code=200), channel=0).expect_end_after_close()
    client, _ = redirected(server)
    client.drop()
    assert client.closed


def test_redirected_client_is_disconnected_after_60_seconds(server: Server) -> None:
    server.state.redirect = Redirect("elsewhere")
    client, _ = redirected(server)
    client.after(60).expect_silent_end()


def test_method_from_a_redirected_client_closes_the_connection(server: Server) -> None:
    server.state.redirect = Redirect("elsewhere")
    for method, number in ((m.ChannelOpen(), 1), (m.ConnectionOpen(virtual_host="/"), 0)):
        client, _ = redirected(server)
        client.send(method, number).expect(shared.ConnectionClose, 0)


@rule("0-9/connection.open/insist-behaviour#opens", "0-9/connection.open-ok/known-hosts")
def test_client_with_insist_is_served_and_gets_the_known_hosts(server: Server) -> None:
    server.state.redirect = Redirect("elsewhere", ("third.example",))
    client = tuned(server)
    assert opened(client, insist=True).known_hosts == "elsewhere,third.example"
    client.open_channel()


@rule("0-9/connection.open/insist-behaviour#closes")
def test_client_with_insist_is_refused_for_an_unknown_virtual_host(server: Server) -> None:
    server.state.redirect = Redirect("elsewhere")
    client = tuned(server).send(m.ConnectionOpen(virtual_host="/unknown", insist=True), 0)
    client.expect(shared.ConnectionClose, 0)


@rule("0-9/connection.open-ok/known-hosts", "0-9/domain.known-hosts/use")
@pytest.mark.parametrize("insist", [False, True])
def test_known_hosts_are_empty_without_a_redirect(server: Server, insist: bool) -> None:
    assert opened(tuned(server), insist=insist).known_hosts == ""


def test_on_redirect_is_called_for_each_redirected_client_only(server: Server) -> None:
    notes: list[None] = []
    server.state.redirect = Redirect("elsewhere", on_redirect=lambda: notes.append(None))
    redirected(server)
    opened(tuned(server), insist=True)
    assert len(notes) == 1


def test_no_more_known_hosts_are_named_than_fit(server: Server) -> None:
    server.state.redirect = Redirect("a" * 255, ("b" * 200, "c" * 100, "d" * 54))
    _, redirect = redirected(server)
    assert (redirect.host, redirect.known_hosts) == ("a" * 255, "b" * 200 + "," + "d" * 54)


def test_a_client_of_0_8_is_redirected_by_the_number_that_it_knows(server: Server) -> None:
    server.state.redirect = Redirect("elsewhere")
    client = server.connect()
    client.send_bytes(version_0_8.PROTOCOL_HEADERS[0]).take_frame()
    client.login().take_frame()
    client.send(m.ConnectionTuneOk(channel_max=2047, frame_max=131072, heartbeat=0), 0)
    octets = client.send(m.ConnectionOpen(virtual_host="/"), 0).take_bytes()
    assert octets[7:11] == b"\0\x0a\0\x32"
    assert b"elsewhere" in octets


# --- paths ------------------------------------------------------------------------------------------------
@rule("0-9/domain.path/syntax#slash", "0-9/domain.path/syntax#characters", "0-9/domain.path/syntax#length")
@pytest.mark.deviates("0-9/domain.path/syntax#slash", "0-9/domain.path/syntax#characters")
@pytest.mark.deviates("0-9/domain.path/syntax#length")
@pytest.mark.parametrize("path", ["no-slash", "/with space", "/a//b", "/.", "/" + "a" * 127])
def test_the_name_of_a_virtual_host_is_a_path(server: Server, path: str) -> None:
    server.state.add_virtual_host(path)
    permissions = server.state.access.users["guest"].permissions
    permissions[path] = permissions["/"]
    client = tuned(server)
    if server.is_spec:
        client.ends(m.ConnectionOpen(virtual_host=path), 502, channel=0)
    else:
        opened(client, virtual_host=path)


@rule("0-9/domain.path/syntax#slash", "0-9/domain.path/syntax#characters", "0-9/domain.path/syntax#length")
@pytest.mark.parametrize("path", ["/", "/data", "/a/b.c-d_e+f!g=h:i", "/" + "a" * 126])
def test_connection_open_accepts_every_valid_virtual_host_path(server: Server, path: str) -> None:
    server.state.add_virtual_host(path)
    permissions = server.state.access.users["guest"].permissions
    permissions[path] = permissions["/"]
    opened(tuned(server), virtual_host=path)
