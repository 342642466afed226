"""What holds between the channels of one connection."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.mark.rule("0-9/channels/multiple#many", "0-9-1/channels/multiple#many")
def test_hundred_channels_of_one_connection_publish_and_get_independently(server: Server) -> None:
    client = server.client(channels=100)
    for number in range(1, 101):
        client.declare(f"q{number}", channel=number)
        client.publish(str(number).encode(), routing_key=f"q{number}", channel=number)
    for number in range(1, 101):
        assert client.fetch(f"q{number}", channel=number).body == str(number).encode()


@pytest.mark.rule("0-9/channels/multiple#one", "0-9-1/channels/multiple#one")
def test_connection_with_channel_max_1_publishes_on_its_channel(server: Server) -> None:
    assert server.client(channel_max=1).declare("q").publish(routing_key="q").count("q") == 1


def _backlog(client: Client, queue: str, channel: int = 1) -> None:
    """Eight times as much as a connection is sent at once."""
    client.declare(queue, channel=channel)
    for _ in range(80):
        client.publish(b"x" * 100_000, routing_key=queue, channel=channel)


@pytest.mark.needs("own broker")
@pytest.mark.rule("0-9-1/channels/fair")
def test_deliveries_of_two_channels_with_long_queues_alternate(server: Server) -> None:
    client = server.client(channels=2)
    _backlog(client, "first")
    _backlog(client, "second")
    client.send(m.BasicConsume(queue="first", no_ack=True), channel=1)
    client.send(m.BasicConsume(queue="second", no_ack=True), channel=2)
    seen = {1: 0, 2: 0}
    while sum(seen.values()) < 60:
        frame = client.take_frame()
        seen[frame.channel] += frame.type == 2
    assert min(seen.values()) >= 20, f"of the first 60 deliveries both channels had their share: {seen}"


@pytest.mark.needs("own broker")
@pytest.mark.rule("0-9-1/channels/no-starvation")
def test_a_request_is_answered_before_the_backlog_of_another_channel(server: Server) -> None:
    client = server.client(channels=2)
    _backlog(client, "long")
    client.send(m.BasicConsume(queue="long", no_ack=True), channel=1)
    answer = m.QueueDeclareOk(queue="quick").encode()
    for _ in range(4):
        client.send(m.QueueDeclare(queue="quick"), channel=2)
        octets = b"".join(client.connection.pending())
        client.connection.sent(len(octets))
        assert answer in octets, "the answer goes out with the deliveries that were on their way already"
        assert 1_000_000 < len(octets) < 2_000_000


@pytest.mark.rule("0-9-1/channels/independent")
def test_channel_exception_does_not_affect_other_channels(server: Server) -> None:
    client = server.client(channels=2).declare("other", channel=2).consume("other", "t", channel=2)
    client.fails(m.QueueDeclare(queue="missing", passive=True), 404, channel=1)
    client.publish(b"still here", routing_key="other", channel=2)
    assert client.delivery(channel=2).body == b"still here"
    client.open_channel(1)


@pytest.mark.rule("0-9-1/channels/one-vhost")
def test_all_channels_of_a_connection_use_the_same_virtual_host(server: Server) -> None:
    client = server.client(channels=2).declare("shared", channel=1)
    assert client.publish(routing_key="shared", channel=1).count("shared", channel=2) == 1


@pytest.mark.needs("settings")
@pytest.mark.rule("0-9-1/channels/vhost-authorization")
def test_open_of_virtual_host_without_permission_is_refused_with_530(server: Server) -> None:
    server.state.add_virtual_host("/theirs")
    server.state.access.add(User("ann", "secret", (), {"/theirs": Permission()}))
    server.client(user="ann", password="secret", virtual_host="/theirs").declare("q")
    refused = server.started()
    refused.login("ann", "secret").expect(m.ConnectionTune, 0)
    refused.send(m.ConnectionTuneOk(channel_max=10, frame_max=131072), 0)
    refused.ends(m.ConnectionOpen(virtual_host="/"), 530, channel=0)


@pytest.mark.rule("0-9-1/channels/no-vhost-switch")
@pytest.mark.parametrize(("personality", "code"), [("spec", 503), ("rabbitmq-4.2", 504)])
def test_second_connection_open_closes_the_connection(personality: str, protocol: str, code: int) -> None:
    server = Server(personality, protocol=protocol)
    server.state.add_virtual_host("other")
    server.state.access.users["guest"].permissions["other"] = Permission()
    server.state.access.changed()
    server.client().ends(m.ConnectionOpen(virtual_host="other"), code, channel=0, at=(10, 40))


# --- virtual hosts (RabbitMQ: documented isolation) ----------------------------------------------------
@pytest.fixture
def two_hosts(server: Server) -> tuple[Client, Client]:
    """Clients in the virtual hosts "/" and "other"."""
    server.state.add_virtual_host("other")
    server.state.access.users["guest"].permissions["other"] = Permission()
    server.state.access.changed()
    return server.client(), server.client(virtual_host="other")


@pytest.mark.needs("settings")
def test_queues_of_equal_name_in_two_virtual_hosts_are_separate(two_hosts: tuple[Client, Client]) -> None:
    here, there = two_hosts
    here.declare("q", durable=True)
    there.declare("q")  # Flags that would be refused where the queue exists.
    here.publish(routing_key="q")
    assert (here.count("q"), there.count("q")) == (1, 0)


@pytest.mark.needs("settings")
def test_exchange_is_not_found_in_another_virtual_host(two_hosts: tuple[Client, Client]) -> None:
    here, there = two_hosts
    here.declare_exchange("x", "fanout")
    assert (
        there.fails(m.ExchangeDeclare(exchange="x", passive=True), 404).reply_text
        == "NOT_FOUND - no exchange 'x' in vhost 'other'"
    )


@pytest.mark.needs("settings")
def test_predeclared_exchanges_route_within_their_virtual_host(two_hosts: tuple[Client, Client]) -> None:
    here, there = two_hosts
    for client in two_hosts:
        client.declare("q")
        client.bind("q", "amq.fanout")
    there.publish(exchange="amq.fanout")
    assert (here.count("q"), there.count("q")) == (0, 1)


@pytest.mark.needs("settings")
def test_exclusive_queue_locks_its_name_only_in_its_virtual_host(two_hosts: tuple[Client, Client]) -> None:
    here, there = two_hosts
    here.declare("q", exclusive=True)
    assert there.declare_ok("q", exclusive=True).queue == "q"
