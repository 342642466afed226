"""Class dtx: the work of a channel, which somebody else completes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.contents import speaking
from compat_tests.scripted.contents_0_9 import Channel
from fakeamqp.model.access import Permission, User
from fakeamqp.model.errors import NotFound
from fakeamqp.model.transactions import XaOutcome, Xid
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared
from fakeamqp.protocols.amqp_0_10.codec import commands, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import XaStatus

rule = pytest.mark.rule

BRANCH = Xid(0, b"branch", b"")


def started(server: Server, name: str = "branch") -> Client:
    """A client whose work belongs to a branch; there is a queue "q"."""
    return begin(server.client().declare("q"), name)


def begin(client: Client, name: str = "branch", channel: int = 1) -> Client:
    client.perform(m.DtxSelect(), channel=channel).perform(m.DtxStart(dtx_identifier=name), channel=channel)
    return client


@rule("0-9/dtx/grammar", "0-9/dtx.select-ok/confirm", "0-9/dtx.start/starts")
def test_publishes_wait_for_the_branch_to_be_committed(server: Server) -> None:
    client = started(server).publish(b"1", routing_key="q")
    Channel(client, "file").publish(b"2")
    assert client.count("q") == 0
    branches = server.vhost.branches
    (view,) = branches.views()
    assert (view.xid, view.working, view.publishes) == (BRANCH, 1, 2)
    assert branches.commit(BRANCH, one_phase=True) is XaOutcome.OK
    assert client.count("q") == 2
    assert not len(branches)


def test_an_identifier_is_any_bytes(server: Server) -> None:
    started(server, "\udcff\udcfe")
    (view,) = server.vhost.branches.views()
    assert view.xid == Xid(0, b"\xff\xfe", b"")


@rule("0-9/dtx.start/starts")
def test_branch_rollback_drops_publishes_and_requeues_acked_messages(server: Server) -> None:
    setup = server.client().declare("q").fill("q", b"basic")
    Channel(setup, "file").publish(b"file")
    client = started(server).consume("q", "b")
    client.ack(client.delivery().method.delivery_tag)
    files = Channel(client, "file")
    files.consume().ack(files.take().tag)
    client.publish(b"new", routing_key="q").perform(shared.BasicCancel(consumer_tag="b"))
    client.perform(m.FileCancel(consumer_tag="t"))
    assert server.vhost.branches.rollback(BRANCH) is XaOutcome.OK
    assert setup.count("q") == 2
    client.close_channel()
    assert setup.count("q") == 2


@rule("0-9/dtx.start/starts")
def test_acks_are_done_with_the_commit(server: Server) -> None:
    setup = server.client().declare("q").fill("q", b"1", b"2")
    client = started(server).consume("q", "b")
    first, _ = client.delivery(), client.delivery()
    client.ack(first.method.delivery_tag)
    server.vhost.branches.commit(BRANCH, one_phase=True)
    client.drop()
    # What was not acknowledged was no work of the branch.
    assert setup.empty("q") == [b"2"]


@rule("0-9/dtx/model")
@pytest.mark.parametrize("decide", ["commit", "rollback"])
def test_a_coordinator_of_0_10_decides(server: Server, decide: str) -> None:
    client = started(server).publish(b"1", routing_key="q")
    session = speaking(server, "0-10").session()
    xid = structs.Xid(format=0, global_id=b"branch", branch_id=b"")
    assert session.call(commands.DtxPrepare(xid=xid)).status == XaStatus.XA_OK
    assert client.count("q") == 0
    command = commands.DtxCommit(xid=xid) if decide == "commit" else commands.DtxRollback(xid=xid)
    assert session.call(command).status == XaStatus.XA_OK
    assert client.count("q") == (1 if decide == "commit" else 0)


@rule("0-9/dtx/model")
def test_after_the_decision_the_channels_work_counts_by_itself(server: Server) -> None:
    client = started(server)
    server.vhost.branches.rollback(BRANCH)
    assert client.publish(b"1", routing_key="q").count("q") == 1
    client.fails(m.DtxStart(dtx_identifier="another"), 406)


@rule("0-9/dtx/model")
def test_a_channel_that_the_client_closes_has_done_its_work(server: Server) -> None:
    started(server).publish(b"1", routing_key="q").close_channel()
    (view,) = server.vhost.branches.views()
    assert (view.working, view.publishes, view.outcome) == (0, 1, None)
    assert server.vhost.branches.prepare(BRANCH) is XaOutcome.OK
    server.restart()
    server.vhost.branches.rollback(BRANCH)


def _lose(client: Client) -> None:
    client.drop()


def _fail(client: Client) -> None:
    client.fails(shared.QueueDeclare(queue="missing", passive=True), 404)


def _close_connection(client: Client) -> None:
    client.perform(shared.ConnectionClose(reply_code=200), channel=0)


@rule("0-9/dtx/model")
@pytest.mark.parametrize("end", [_lose, _fail, _close_connection])
def test_a_channel_that_ends_otherwise_has_failed(server: Server, end: Callable[[Client], None]) -> None:
    client = started(server).publish(b"1", routing_key="q")
    end(client)
    branches = server.vhost.branches
    assert branches.prepare(BRANCH) is XaOutcome.ROLLED_BACK
    assert branches.rollback(BRANCH) is XaOutcome.OK
    assert server.client().count("q") == 0


def test_persistent_publishes_of_a_prepared_branch_survive_a_crash(server: Server) -> None:
    client = begin(server.client().declare("q", durable=True))
    client.publish(b"1", routing_key="q", delivery_mode=2)
    Channel(client, "file").publish(b"2")
    client.publish(b"3", routing_key="q", delivery_mode=1)
    assert server.vhost.branches.prepare(BRANCH) is XaOutcome.OK
    other = server.restart(crash=True).client()
    assert other.count("q") == 0
    server.vhost.branches.commit(BRANCH)
    assert other.count("q") == 2


def test_a_branch_that_takes_too_long_is_rolled_back(server: Server) -> None:
    client = started(server).publish(b"1", routing_key="q")
    client.after(server.state.personality.branches.default_timeout + 1).publish(b"2", routing_key="q")
    assert server.vhost.branches.prepare(BRANCH) is XaOutcome.TIMED_OUT
    server.vhost.branches.rollback(BRANCH)
    assert client.count("q") == 0


def test_several_channels_have_branches_of_their_own(server: Server) -> None:
    client = begin(begin(server.client(channels=2).declare("q"), "one"), "two", channel=2)
    client.publish(b"1", routing_key="q").publish(b"2", routing_key="q", channel=2)
    server.vhost.branches.commit(Xid(0, b"two", b""), one_phase=True)
    assert client.empty("q") == [b"2"]


def test_unroutable_file_committed_after_channel_close_is_not_returned(server: Server) -> None:
    client = started(server)
    Channel(client, "file").stage_file(b"1")
    client.send(m.FilePublish(routing_key="nobody", identifier="f", mandatory=True)).close_channel()
    server.vhost.branches.commit(BRANCH, one_phase=True)
    client.expect_nothing()


def test_stream_publish_in_a_branch_takes_effect_at_once(server: Server) -> None:
    client = started(server)
    Channel(client, "stream").publish(b"1")
    assert client.count("q") == 1


# --- what is refused -----------------------------------------------------------------------------------
@rule("0-9/dtx.select/sets-mode#needed")
def test_dtx_start_without_select_is_refused_with_406(client: Client) -> None:
    client.fails(m.DtxStart(dtx_identifier="branch"), 406)


@rule("0-9/dtx.select/sets-mode#mode")
def test_dtx_select_may_be_repeated(client: Client) -> None:
    for _ in range(2):
        client.perform(m.DtxSelect())
    client.perform(m.DtxStart(dtx_identifier="branch")).perform(m.DtxSelect())


@rule("0-9/dtx.start/identifier-not-null")
def test_dtx_start_with_an_empty_identifier_closes_the_connection_with_502(client: Client) -> None:
    client.perform(m.DtxSelect()).ends(m.DtxStart(), 502)


WORK: dict[str, Callable[[Client], None]] = {
    "publish": lambda client: client.publish(b"1", routing_key="q"),
    "consume": lambda client: client.send(shared.BasicConsume(queue="q", no_wait=True)),
    "get": lambda client: client.send(shared.BasicGet(queue="q")),
    "file.publish": lambda client: Channel(client, "file").publish(b"1"),
    "file.consume": lambda client: client.send(m.FileConsume(queue="q", no_wait=True)),
    "stream.publish": lambda client: Channel(client, "stream").publish(b"1"),
    "stream.consume": lambda client: client.send(m.StreamConsume(queue="q", no_wait=True)),
    "start": lambda client: client.send(m.DtxStart(dtx_identifier="first")),
}


@rule("0-9/dtx.start/first-on-channel")
@pytest.mark.parametrize("work", WORK)
def test_dtx_start_after_work_on_the_channel_is_refused_with_406(client: Client, work: str) -> None:
    client.declare("q").perform(m.DtxSelect())
    WORK[work](client)
    client.take_bytes()
    client.fails(m.DtxStart(dtx_identifier="branch"), 406)


@rule("0-9/dtx.start-ok/failure")
def test_dtx_start_with_an_identifier_in_use_is_refused_with_406(server: Server) -> None:
    client = started(server)
    other = server.client()
    other.perform(m.DtxSelect()).fails(m.DtxStart(dtx_identifier="branch"), 406)
    # That was none of the other's business.
    client.publish(b"1", routing_key="q")
    server.vhost.branches.commit(BRANCH, one_phase=True)
    assert client.count("q") == 1
    other.open_channel()
    begin(other)


def test_channel_refuses_tx_and_dtx_together(server: Server) -> None:
    client = server.client(channels=2)
    client.call(m.TxSelect(), shared.TxSelectOk)
    client.fails(m.DtxSelect(), 406)
    begin(client, channel=2)
    for method in (m.TxSelect(), m.TxCommit(), m.TxRollback()):
        client.fails(method, 406, channel=2)
        client.open_channel(2)


def test_branch_of_a_lost_connection_is_known_until_rollback(server: Server) -> None:
    started(server).drop()
    branches = server.vhost.branches
    assert len(branches) == 1
    branches.rollback(BRANCH)
    with pytest.raises(NotFound):
        branches.rollback(BRANCH)


def test_a_branch_is_closed_to_other_users_of_0_10(server: Server) -> None:
    started(server).publish(b"1", routing_key="q").close_channel()
    server.state.access.add(User("bob", "secret", (), {"/": Permission()}))
    xid = structs.Xid(0, b"branch", b"")
    for command in (commands.DtxCommit(xid=xid, one_phase=True), commands.DtxRollback(xid=xid)):
        session = speaking(server, "0-10").session(command.NAME.encode(), user="bob", password="secret")
        session.fails(command, 403)
    (view,) = server.vhost.branches.views()
    assert (view.xid, view.publishes) == (BRANCH, 1)
