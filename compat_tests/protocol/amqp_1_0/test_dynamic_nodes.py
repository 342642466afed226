"""Dynamic sources and targets of AMQP 1.0: queues of the broker that live as long as their link."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_1_0.conftest import with_queues
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, Client, Server, attach
from fakeamqp.model.limits import VirtualHostLimits
from fakeamqp.protocols.amqp_1_0.addresses import queue_of_source
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Described, Symbol, UInt

DYNAMIC: dict[str, Any] = {"dynamic": True, "capabilities": (Symbol("temporary-queue"),)}
ROLES = pytest.mark.parametrize("role", [SENDER, RECEIVER])


def node(client: Client, role: bool, handle: int = 0, **fields: Any) -> c.Source | c.Target:
    """Attach to a dynamic node; returns the terminus of the answer."""
    terminus = {**DYNAMIC, **fields.pop("terminus", {})}
    attached = (client.receiver if role else client.sender)(None, handle, terminus=terminus, **fields)
    made: c.Source | c.Target = c.read_composite(
        attached.attached.source if role else attached.attached.target
    )
    return made


def dynamic_queues(server: Server) -> list[Any]:
    return [each for name, each in server.vhost.queues.items() if name.startswith("amq.dyn")]


@pytest.mark.rule("1-0/attach/dynamic")
@ROLES
def test_dynamic_node_is_an_exclusive_classic_queue(rabbitmq: Server, role: bool) -> None:
    made = node(rabbitmq.session(), role)
    (queue,) = dynamic_queues(rabbitmq)
    assert queue_of_source(made.address) == queue.name
    assert queue.name.startswith("amq.dyn-test-link 0-")
    assert (queue.type_name, queue.durable, queue.auto_delete) == ("classic", True, False)
    assert queue.exclusive_owner is not None
    assert (made.durable, made.expiry_policy, made.timeout, made.dynamic) == (0, "link-detach", 0, True)
    lifetime, modes = made.dynamic_node_properties.values()
    assert isinstance(c.read_composite(lifetime), c.DeleteOnClose)
    assert modes == ["move"]


@pytest.mark.rule("1-0/attach/dynamic")
def test_fields_of_a_dynamic_source_depend_on_the_version() -> None:
    said = {"filter": {Symbol("f"): Described(Symbol("f"), "x")}, "timeout": UInt(9)}
    capabilities = {}
    for version in ("4.1", "4.2", "4.3"):
        made = node(Server(f"rabbitmq-{version}").session(), RECEIVER, terminus=said)
        assert (made.timeout, made.distribution_mode, len(made.outcomes)) == (0, "move", 4)
        capabilities[version] = (made.capabilities, made.filter)
    temporary = ("temporary-queue",)
    assert capabilities == {"4.1": (temporary, {}), "4.2": (temporary, None), "4.3": (None, None)}


@pytest.mark.rule("1-0/attach/dynamic")
def test_name_of_a_dynamic_queue_leaves_out_long_names(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    node(client, RECEIVER, name="n" * 145)
    node(client, RECEIVER, 1, name="n" * 146)
    first, second = dynamic_queues(rabbitmq)
    assert first.name.startswith(f"amq.dyn-test-{'n' * 145}-")
    assert second.name.startswith("amq.dyn.gen-")


@pytest.mark.rule("1-0/attach/dynamic")
def test_dynamic_nodes_of_one_link_name_are_two(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    assert node(client, RECEIVER, 0, name="n").address != node(client, RECEIVER, 1, name="n").address


@pytest.mark.rule("1-0/attach/dynamic-refused")
@ROLES
def test_dynamic_node_without_capability_is_refused(rabbitmq: Server, role: bool) -> None:
    client = rabbitmq.session()
    kind, undefined = ("source", 11) if role else ("target", 7)
    _, error = client.refused(role, None, terminus={"dynamic": True})
    values = ",".join(["undefined"] * 4 + ["true"] + ["undefined"] * (undefined - 5))
    assert error.condition == "amqp:not-implemented"
    shown = "".join(error.description.split())
    assert shown == f"Dynamic{kind}notsupported:{{'v1_0.{kind}',{values}}}"
    client.refused(role, None, terminus={"dynamic": True, "capabilities": (Symbol("topic"),)})
    _, error = client.refused(role, "/queues/q", terminus=DYNAMIC)
    shown = "".join(error.description.split())
    assert f"'v1_0.{kind}',{{utf8,<<\"/queues/q\">>}},undefined" in shown
    assert shown.endswith('{array,symbol,[{symbol,<<"temporary-queue">>}]}}')
    assert not dynamic_queues(rabbitmq)


@pytest.mark.rule("1-0/attach/dynamic-refused")
@ROLES
def test_dynamic_node_ends_the_session_in_rabbitmq_4_0(rabbitmq_4_0: Server, role: bool) -> None:
    client = rabbitmq_4_0.session()
    client.send(attach(role, None, terminus=DYNAMIC))
    text = f"Dynamic {'sources' if role else 'targets'} not supported"
    client.expect_end("amqp:not-implemented", text)


@pytest.mark.rule("1-0/detach/dynamic")
@ROLES
@pytest.mark.parametrize("how", ["detach", "end", "close", "lost"])
def test_dynamic_queue_goes_with_its_link(rabbitmq: Server, role: bool, how: str) -> None:
    client = rabbitmq.session()
    node(client, role)
    assert dynamic_queues(rabbitmq)
    if how == "lost":
        client.drop()
    else:
        client.send({"detach": c.Detach(handle=0), "end": c.End(), "close": c.Close()}[how])
    assert not dynamic_queues(rabbitmq)


@pytest.mark.rule("1-0/detach/dynamic")
@ROLES
def test_end_of_a_dynamic_node_detaches_its_other_links(rabbitmq: Server, role: bool) -> None:
    client = rabbitmq.session()
    address = node(client, role).address
    client.receiver(address, 1)
    client.sender(address, 2)
    client.send(c.Detach(handle=0))
    ended = {each.what.handle: each.what.error for each in client.take_all()}
    assert set(ended) == {0, 1, 2}
    assert ended.pop(0) is None
    assert {each.condition for each in ended.values()} == {"amqp:resource-deleted"}


@pytest.mark.rule("1-0/detach/dynamic")
def test_end_of_a_session_with_links_to_its_dynamic_node_sends_no_detach(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    address = node(client, SENDER).address
    client.receiver(address, 1, 5)
    client.send(c.End())
    client.expect(c.End)
    client.expect_nothing()
    client.begin()


@pytest.mark.rule("1-0/attach/dynamic")
@ROLES
def test_other_connections_send_to_a_dynamic_node_and_do_not_receive(rabbitmq: Server, role: bool) -> None:
    address = node(rabbitmq.session(), role).address
    other = rabbitmq.session()
    assert isinstance(other.sender(address).publish(), c.Accepted)
    _, error = other.refused(RECEIVER, address, handle=1)
    assert error.condition == "amqp:resource-locked"


@pytest.mark.rule("1-0/attach/dynamic", "1-0/errors/rights")
@ROLES
def test_missing_right_to_declare_the_queue_ends_the_session(role: bool) -> None:
    server = with_queues(Server())
    rights = server.state.access.users["guest"].permissions
    rights["/"] = type(rights["/"])("^$", ".*", ".*")
    client = server.session()
    client.send(attach(role, None, terminus=DYNAMIC))
    assert client.expect_end("amqp:unauthorized-access").description.startswith("configure access to queue")
    assert not dynamic_queues(server)


@pytest.mark.rule("1-0/attach/dynamic")
@ROLES
def test_dynamic_node_beyond_the_limit_of_queues_is_refused(role: bool) -> None:
    server = Server()
    server.vhost.limits = VirtualHostLimits(max_queues=0)
    _, error = server.session().refused(role, None, terminus=DYNAMIC)
    assert error.condition == "amqp:resource-limit-exceeded"
    assert error.description.endswith(": queue limit in vhost '/' (0) is reached")
