"""Addresses of AMQP 1.0: percent-encoding, and those of version 1."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_1_0.conftest import with_queues
from compat_tests.scripted.amqp_1_0 import RECEIVER, SENDER, Client, Server, attach, message
from fakeamqp.model.access import Permission, TopicPermission
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.model.virtual_host.virtual_host import VirtualHostMetadata
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol, UInt


@pytest.fixture(params=["rabbitmq-4.0", "rabbitmq-4.3"])
def permits(request: pytest.FixtureRequest) -> Server:
    """A broker that permits addresses of version 1, with queue "q"."""
    return with_queues(Server(request.param, permit=["amqp_address_v1"]))


def subject(text: str) -> bytes:
    return message(properties=c.Properties(subject=text))


# --- version 2 ---------------------------------------------------------------------------------------------


@pytest.mark.rule("1-0/attach/address")
def test_address_with_characters_that_must_be_encoded_is_bad(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    for part in ("a b", "a#b", "a%", "a%2", "a%zz", "a?b", "é", "[a]", "a|b", "a/b"):
        _, error = client.refused(RECEIVER, f"/queues/{part}")
        shown = f'<<"/queues/{part}"/utf8>>' if part == "é" else f'<<"/queues/{part}">>'
        assert error.description == f"Attach refused: {{bad_address,{{utf8,{shown}}}}}"
        _, error = client.refused(SENDER, f"/exchanges/amq.topic/{part}" if part != "a/b" else "/queues/a/b")
        assert error.description.startswith("Attach refused: {bad_address_string,")


@pytest.mark.rule("1-0/attach/address")
def test_address_may_have_the_other_characters_of_a_uri(rabbitmq: Server) -> None:
    name = "a!$&'()*+,;=:@~-._"
    rabbitmq.vhost.queues.create(name)
    client = rabbitmq.session()
    assert isinstance(client.sender(f"/queues/{name}").publish(), c.Accepted)


@pytest.mark.rule("1-0/attach/address")
def test_invalid_utf_8_in_a_queue_name_is_shown_as_latin_1(rabbitmq: Server) -> None:
    _, error = rabbitmq.session().refused(RECEIVER, "/queues/a%FF")
    assert error.description == "no queue 'aÿ' in vhost '/'"


@pytest.mark.rule("1-0/attach/address")
@pytest.mark.parametrize("value", [Symbol("/queues/q"), UInt(5)])
def test_address_of_another_type_than_string_is_refused(permits: Server, value: Any) -> None:
    shown = '{symbol,<<"/queues/q">>}' if isinstance(value, Symbol) else "{uint,5}"
    for role in (SENDER, RECEIVER):
        error = refusal(permits.session(), role, value)
        assert error.description.endswith(f": {{bad_address,{shown}}}")


def refusal(client: Client, role: bool, address: Any) -> c.Error:
    """The error of an attach, whatever its scope is."""
    client.send(attach(role, address))
    last = client.take_all()[-1].what
    assert isinstance(last, (c.Detach, c.End))
    error: c.Error = last.error
    return error


# --- version 1 ---------------------------------------------------------------------------------------------


@pytest.mark.rule("1-0/attach/address-v1")
@pytest.mark.parametrize("role", [SENDER, RECEIVER])
@pytest.mark.parametrize("address", ["/queue/{}", "{}"])
@pytest.mark.parametrize("durable", [0, 1, 2])
def test_queue_of_version_1_is_declared_with_the_durability_of_the_terminus(
    permits: Server, role: bool, address: str, durable: int
) -> None:
    client = permits.session()
    client.send(attach(role, address.format("new%2Fq"), terminus={"durable": UInt(durable)}))
    assert isinstance(client.take().what, c.Attach)
    queue = permits.vhost.queues["new/q"]
    assert (queue.type_name, queue.durable, queue.auto_delete) == ("classic", durable > 0, False)
    assert (queue.exclusive_owner, queue.arguments) == (None, {})


@pytest.mark.rule("1-0/attach/address-v1")
def test_queue_of_version_1_is_classic_whatever_the_default_of_the_virtual_host(permits: Server) -> None:
    permits.vhost.metadata = VirtualHostMetadata(default_queue_type="quorum")
    permits.session().sender("new", terminus={"durable": UInt(1)})
    assert permits.vhost.queues["new"].type_name == "classic"


@pytest.mark.rule("1-0/attach/address-v1")
def test_existing_queue_is_taken_as_it_is(permits: Server) -> None:
    declaration = QueueDeclaration(durable=True, arguments={"x-queue-type": "quorum"})
    permits.vhost.queues.declare("there", declaration)
    client = permits.session()
    for handle, address in enumerate(("/queue/there", "there", "/amq/queue/there")):
        client.sender(address, handle)
        client.receiver(address, handle + 10)
    assert len(permits.vhost.queues["there"].subscriptions) == 3


@pytest.mark.rule("1-0/attach/address-v1")
def test_exclusive_queue_of_another_connection_takes_messages(permits: Server) -> None:
    queue = permits.vhost.queues.create("mine")
    permits.vhost.queues.claim(queue, object())
    client = permits.session()
    assert isinstance(client.sender("mine").publish(), c.Accepted)
    assert isinstance(client.sender("/queues/mine", 1).publish(), c.Accepted)
    error = refusal(permits.session(), RECEIVER, "mine")
    assert error.condition == "amqp:resource-locked"


@pytest.mark.rule("1-0/attach/address-v1")
def test_exchange_without_key_takes_the_subject_of_each_message(permits: Server) -> None:
    permits.vhost.bindings.bind("amq.direct", permits.vhost.queues["q"], "k")
    client = permits.session()
    sender = client.sender("/exchange/amq.direct")
    outcomes = [type(sender.publish(each)) for each in (subject("k"), subject("other"), message())]
    assert outcomes == [c.Accepted, c.Released, c.Released]
    sender = client.sender("/exchange/amq.direct/k", 1)
    assert isinstance(sender.publish(subject("other")), c.Accepted)
    assert [each.message.routing_key for each in permits.vhost.queues["q"].ready] == ["k", "k"]


@pytest.mark.rule("1-0/attach/address-v1")
def test_target_queue_takes_the_subject_as_name_of_the_queue(permits: Server) -> None:
    sender = permits.session().sender("/queue")
    outcomes = [type(sender.publish(each)) for each in (subject("q"), subject("none"))]
    assert outcomes == [c.Accepted, c.Released]


@pytest.mark.rule("1-0/attach/address-v1")
def test_target_topic_is_a_key_of_amq_topic(permits: Server) -> None:
    permits.vhost.bindings.bind("amq.topic", permits.vhost.queues["q"], "a.*")
    sender = permits.session().sender("/topic/a.b")
    assert isinstance(sender.publish(subject("x")), c.Accepted)


@pytest.mark.rule("1-0/attach/address-v1")
@pytest.mark.parametrize(
    ("address", "exchange", "key"),
    [
        ("/topic/a.*", "amq.topic", "a.b"),
        ("/exchange/amq.direct/a%2Fb", "amq.direct", "a/b"),
        ("/exchange/amq.direct", "amq.direct", ""),
    ],
)
def test_source_exchange_gets_a_bound_queue_that_outlives_the_link(
    permits: Server, address: str, exchange: str, key: str
) -> None:
    client = permits.session()
    receiver = client.receiver(address, 0, 5)
    (name,) = [each for each in permits.vhost.queues if each.startswith("amq.gen-")]
    sender = client.sender(f"/exchanges/{exchange}/{key.replace('/', '%2F')}", 1)
    sender.transfer(settled=True)
    assert receiver.take()[1]["annotations"]["x-routing-key"] == key
    receiver.detach()
    assert len(permits.vhost.queues[name].ready) == 1


BAD = {
    "/exchange": "{invalid_destination,exchange,[]}",
    "/exchange/": '{invalid_destination,exchange,"/"}',
    "/exchange/a/b/c": '{invalid_destination,exchange,"/a/b/c"}',
    "/topic": "{invalid_destination,topic,[]}",
    "/topic/a/b": '{invalid_destination,topic,"/a/b"}',
    "/queue/": '{invalid_destination,queue,"/"}',
    "/queue/a/b": '{invalid_destination,queue,"/a/b"}',
    "/amq/queue": "{invalid_destination,amqqueue,[]}",
    "/temp-queue": "{invalid_destination,temp_queue,[]}",
    "/foo/bar": '{unknown_destination,"/foo/bar"}',
    "a/b": '{unknown_destination,"a/b"}',
    "/exchange/none": "no exchange 'none' in vhost '/'",
    "/amq/queue/none": "no queue 'none' in vhost '/'",
}


@pytest.mark.rule("1-0/attach/address-v1")
@pytest.mark.parametrize("address", BAD)
def test_bad_address_of_version_1_is_refused(permits: Server, address: str) -> None:
    for role in (SENDER, RECEIVER):
        assert refusal(permits.session(), role, address).description.endswith(BAD[address])


@pytest.mark.rule("1-0/attach/address-v1")
def test_source_queue_needs_a_name(permits: Server) -> None:
    text = refusal(permits.session(), RECEIVER, "/queue").description
    assert text.endswith("{invalid_destination,queue,[]}")


@pytest.mark.rule("1-0/attach/address-v1")
@pytest.mark.parametrize("address", ["/temp-queue/a", "/reply-queue/a"])
def test_kinds_of_version_1_that_rabbitmq_crashes_at_end_the_session(permits: Server, address: str) -> None:
    client = permits.session()
    client.send(attach(SENDER, address)).expect_end("amqp:internal-error")


@pytest.mark.rule("1-0/attach/address-v1", "1-0/errors/rights")
def test_missing_right_to_declare_the_queue_ends_the_session(permits: Server) -> None:
    rights = permits.state.access.users["guest"].permissions
    rights["/"] = type(rights["/"])("^$", ".*", ".*")
    client = permits.session()
    text = "configure access to queue 'new' in vhost '/' refused for user 'guest'"
    client.send(attach(SENDER, "new")).expect_end("amqp:unauthorized-access", text)
    assert "new" not in permits.vhost.queues


@pytest.mark.rule("1-0/attach/address-v1", "1-0/errors/rights")
def test_source_exchange_needs_the_rights_of_a_binding(permits: Server) -> None:
    user = permits.state.access.users["guest"]
    user.permissions["/"] = Permission(".*", ".*", "^amq.gen")
    client = permits.session()
    text = "read access to exchange 'amq.topic' in vhost '/' refused for user 'guest'"
    client.send(attach(RECEIVER, "/topic/a.b")).expect_end("amqp:unauthorized-access", text)
    user.permissions["/"] = Permission()
    user.topic_permissions["/", "amq.topic"] = TopicPermission(read="^b")
    client.begin()
    error = client.send(attach(RECEIVER, "/topic/a.b")).expect_end("amqp:unauthorized-access")
    assert "to topic 'a.b' in exchange 'amq.topic'" in error.description


@pytest.mark.rule("1-0/attach/address")
def test_rabbitmq_4_1_ends_the_session_for_a_bad_address_in_the_words_of_4_0() -> None:
    client = Server("rabbitmq-4.1").session()
    text = 'Attach rejected: {bad_address_string,<<"/queues/">>}'
    client.send(attach(SENDER, "/queues/")).expect_end("amqp:invalid-field", text)


@pytest.mark.rule("1-0/attach/address-v1")
def test_address_of_version_1_in_the_property_to_is_rejected(permits: Server) -> None:
    sender = permits.session().sender(None)
    state = sender.publish(message(properties=c.Properties(to="q")))
    assert isinstance(state, c.Rejected)
    assert state.error.description == "bad 'to' address string: q"
