"""The raw client on a node of RabbitMQ: what `Server` and its connections are without sockets, over sockets.

Theory of operation. A broker without a runtime has done all there is to do when `receive` returns, and
tests rely on it: they look at what has come, and at what has not. A node does its work some time later, in
processes of its own. So a connection to a node waits after each send until the node is quiet: the node has
read every byte of the connection, no process of it runs or has a message in its mailbox, and all that it
has written is read here. The node itself says so (`_MODULE`), which takes some milliseconds and no guess of
a time. Many publishes in a row are sent without a wait, and so are methods whose answer says that they are
done. What a node does later on its own, such as an election,
is waited for where a frame is expected.
"""

from __future__ import annotations

import secrets
import socket
import struct
from collections.abc import Callable
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

import pytest

from compat_tests.differential.comparison import PLUGINS
from compat_tests.differential.rabbitmq_node import RabbitMQNode, available
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.needs import Missing, need_of_personality, need_of_state
from compat_tests.scripted.sockets import PATIENCE, SocketConnection, SocketServer
from fakeamqp.connection import Connection, PeerAddress
from fakeamqp.model.personality import PERSONALITIES, Personality, personality
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

# What is sent: contents, a method whose effects are over when its answer has come, and all else.
_PUBLISH, _ANSWERED, _OTHER = range(3)
# start-ok, tune-ok and open, access.request, channel.open, exchange.declare, queue.declare and bind,
# basic.qos, confirm.select and tx.select.
_AT_ONCE = {
    struct.pack(">HH", *each)
    for each in (
        *((10, 11), (10, 31), (10, 40), (20, 10), (30, 10), (40, 10), (50, 10), (50, 20), (60, 10), (85, 10)),
        (90, 10),
    )
}
_BASIC_PUBLISH = struct.pack(">HH", 60, 40)
_DECLARES = {struct.pack(">HH", 40, 10): "exchanges", struct.pack(">HH", 50, 10): "queues"}
_TUNE_OK = struct.pack(">HH", 10, 31)
_CLOSES = [struct.pack(">HH", *each) for each in ((10, 50), (20, 40))]
_SINGLY = 30
"""The first publishes of a connection have each all their effects before the next, such as a confirm."""
_SILENCE = 0.1
"""Seconds without a byte after which a RabbitMQ that runs already is taken to have written all."""
_MUCH = 1 << 16
"""More bytes than that may have kept the node from writing others."""
_SOON = 0.5
"""Seconds to wait for an answer before the node is asked whether it is quiet."""

# A process of the node that answers over a socket of its own. `settle(Port, Octets)` waits until the node is
# quiet and has read so many bytes of the client at this port, or reads no more of them. The answer is whether
# the socket is open, and how many bytes were written to it. The node is quiet if no process has done anything
# from one look at all of them to the next, and none of them runs or has a message, but for those whose client
# does not read. The name of the cluster is set, since a node asks a process outside for the name of the host
# otherwise.
_MODULE = """
-module(fakeamqp_quiet).

-export([start/1]).

start(Secret) ->
    Asker = self(),
    rabbit_nodes:set_cluster_name(rabbit_nodes:cluster_name(), <<"fakeamqp">>),
    spawn(fun() ->
        group_leader(whereis(init), self()),
        Options = [binary, {packet, 4}, {active, false}, {nodelay, true}, {ip, {127, 0, 0, 1}}],
        {ok, L} = gen_tcp:listen(0, Options),
        {ok, Port} = inet:port(L),
        Asker ! {port, Port},
        accept(L, Secret)
    end),
    receive {port, Port} -> Port end.

accept(L, Secret) ->
    {ok, S} = gen_tcp:accept(L),
    case gen_tcp:recv(S, 0) of
        {ok, Secret} -> gen_tcp:close(L), serve(S);
        _ -> gen_tcp:close(S), accept(L, Secret)
    end.

serve(S) ->
    case gen_tcp:recv(S, 0) of
        {ok, <<What, Port:16, Octets:64>>} ->
            {State, Sent} = try answer(What, Port, Octets) catch _:_ -> {0, 0} end,
            gen_tcp:send(S, <<State, Sent:64>>),
            serve(S);
        _ -> ended
    end.

answer($o, Port, _) ->
    wait(fun() -> find(Port) =/= none end, 5000),
    {1, 0};
answer($s, Port, Octets) ->
    wait(fun() -> arrived(find(Port), Octets) end, 5000),
    quiet(),
    case find(Port) of
        none -> {0, 0};
        Socket ->
            {ok, [{send_oct, Sent}]} = inet:getstat(Socket, [send_oct]),
            {1, Sent}
    end;
answer($r, _, _) ->
    User = <<"fakeamqp">>,
    quiet(),
    [catch rabbit_networking:close_connection(P, "reset") || P <- rabbit_networking:connections()],
    [catch rabbit_amqqueue:delete(Q, false, false, User) || Q <- rabbit_amqqueue:list()],
    [rabbit_exchange:delete(element(2, X), false, User)
     || X <- rabbit_exchange:list(), not predeclared(element(2, X))],
    case quiet() of
        ok -> {1, 0};
        _ -> {0, 0}
    end.

wait(Holds, Milliseconds) -> wait(Holds, 1, now_in(Milliseconds)).

wait(Holds, Round, Deadline) ->
    Over = now_in(0) >= Deadline,
    case Holds() of
        true -> ok;
        false when Over -> busy;
        false when Round rem 10 > 0 -> erlang:yield(), wait(Holds, Round + 1, Deadline);
        false -> receive after 1 -> ok end, wait(Holds, Round + 1, Deadline)
    end.

now_in(Milliseconds) -> erlang:monotonic_time(millisecond) + Milliseconds.

find(Port) ->
    Named = [S || S <- erlang:ports(), erlang:port_info(S, name) =:= {name, "tcp_inet"}],
    case [S || S <- Named, at(S, Port)] of
        [Socket | _] -> Socket;
        [] -> none
    end.

at(Socket, Port) ->
    case inet:peername(Socket) of
        {ok, {_, Port}} -> true;
        _ -> false
    end.

arrived(none, _) -> true;
arrived(Socket, Octets) ->
    case inet:getstat(Socket, [recv_oct]) of
        {ok, [{recv_oct, Read}]} when Read < Octets ->
            Read > 0 andalso inet:getopts(Socket, [active]) =:= {ok, [{active, false}]} andalso rests();
        {ok, _} -> true;
        {error, _} -> erlang:port_info(Socket) =:= undefined
    end.

quiet() -> wait(fun rests/0, 20000).

rests() ->
    First = look(),
    erlang:yield(),
    erlang:statistics(total_active_tasks_all) =:= 1 andalso look() =:= First.

look() -> look(erlang:processes() -- [self()], [erlang:statistics(io)]).

look([], Seen) -> Seen;
look([Process | Others], Seen) ->
    case erlang:process_info(Process, [message_queue_len, status, reductions]) of
        undefined -> look(Others, Seen);
        [{_, 0}, {_, waiting}, {_, Work}] -> look(Others, [{Process, Work} | Seen]);
        [_, {_, suspended}, {_, Work}] -> look(Others, [{Process, Work} | Seen]);
        _ -> make_ref()
    end.

predeclared({resource, _, exchange, <<>>}) -> true;
predeclared({resource, _, exchange, <<"amq.", _/binary>>}) -> true;
predeclared(_) -> false.
"""


class Node:
    """A node of RabbitMQ, and what the raw client asks of it beside its connections."""

    def __init__(self, name: str, address: tuple[str, int], version: str) -> None:
        self.personality = personality(name)
        self.address = address
        self.version = version
        self.connections: list[NodeConnection] = []
        self.unsettled: NodeConnection | None = None
        self.sent = 0
        """How often something was sent."""
        self.login: dict[str, str] = {}
        """User, password and virtual host of clients that say nothing else."""
        self.server = NodeServer
        NodeServer.node = self

    def stop(self) -> None:
        """Leave the node."""

    def opened(self, port: int) -> None:
        """Wait until the node has accepted the connection of a client at this port."""

    def settle(self, connection: NodeConnection) -> None:
        """Read all that the node has written to a connection once it is quiet."""
        raise NotImplementedError

    def settle_last(self) -> None:
        """Let what was sent last have all its effects."""
        connection, self.unsettled = self.unsettled, None
        if connection is not None and not connection.clean:
            connection.settle()

    def reset(self) -> None:
        """Close all connections, and delete all queues and exchanges that are not there from the start."""
        if not self.connections:
            return
        for connection in self.connections:
            connection.close()
        self.empty()
        self.connections.clear()
        self.unsettled = None

    def empty(self) -> None:
        """Delete all queues and exchanges that are not there from the start."""
        raise NotImplementedError


class OwnNode(Node):
    """A node that was started for the tests, and that says itself when it is quiet."""

    def __init__(self, series: str, name: str) -> None:
        self.node = RabbitMQNode(series, plugins=PLUGINS)
        self.node.start()
        super().__init__(name, ("127.0.0.1", self.node.port), self.node.version)
        forms = ", ".join(f'"{_erlang(form)}"' for form in _MODULE.split("\n\n"))
        secret = secrets.token_hex(16)
        port = self.node.evaluate(
            "Parse = fun(T) -> {ok, Ts, _} = erl_scan:string(T), {ok, F} = erl_parse:parse_form(Ts), F end, "
            f"{{ok, M, B}} = compile:forms([Parse(T) || T <- [{forms}]]), "
            f'code:load_binary(M, "fakeamqp_quiet", B), fakeamqp_quiet:start(<<"{secret}">>)'
        )
        self._control = socket.create_connection(("127.0.0.1", int(port)), 6 * PATIENCE)
        self._control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._control.sendall(struct.pack(">I", len(secret)) + secret.encode())
        while not self._ask(b"r")[0]:
            pass  # It is still starting.

    def stop(self) -> None:
        """Stop the node."""
        self._control.close()
        self.node.stop()

    def _ask(self, what: bytes, port: int = 0, octets: int = 0) -> tuple[bool, int]:
        self._control.sendall(struct.pack(">IcHQ", 11, what, port, octets))
        answer = self._control.recv(13, socket.MSG_WAITALL)
        state, number = struct.unpack(">4x?Q", answer)
        return state, number

    def opened(self, port: int) -> None:
        self._ask(b"o", port)

    def settle(self, connection: NodeConnection) -> None:
        before = -_MUCH
        while connection.received - before >= _MUCH:
            before = connection.received
            there, written = self._ask(b"s", connection.port, connection.octets_sent)
            while (not there or connection.received < written) and connection.wait():
                pass

    def empty(self) -> None:
        rests, _ = self._ask(b"r")
        assert rests, "the node does not come to rest"


class RunningNode(Node):
    """A RabbitMQ that runs already, at an address.

    It cannot say when it is quiet: it is taken to be when a queue of another connection has come and gone,
    and nothing has come to this one for some time. What the tests declare is deleted by name.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._queues: set[str] = set()
        self._exchanges: set[str] = set()
        self._side: Client | None = None
        given = (parts.username, parts.password, parts.path[1:])
        login = zip(("user", "password", "virtual_host"), given, strict=True)
        address = (parts.hostname or "localhost", parts.port or 5672)
        server = SocketServer(*address)
        client = server.connect()
        client.send_bytes(client.protocol_header)
        offered = client.expect(m.ConnectionStart, 0).server_properties
        client.drop()
        version = offered.get("version", "")
        name = f"rabbitmq-{'.'.join(version.split('.')[:2])}"
        if offered.get("product") != "RabbitMQ" or name not in PERSONALITIES:
            told = f"{offered.get('product')} {version}"
            pytest.exit(f"there is no personality for {told}", returncode=pytest.ExitCode.USAGE_ERROR)
        super().__init__(name, address, version)
        self.login = {key: unquote(value) for key, value in login if value}
        self._server = server

    def _other(self) -> Client:
        if self._side is None or self._side.closed:
            self._side = self._server.client(**self.login)
        return self._side

    def stop(self) -> None:
        if self._side is not None:
            self._side.drop()

    def settle(self, connection: NodeConnection) -> None:
        other = self._other()
        other.call(m.QueueDelete(queue=other.declare_ok(exclusive=True).queue), m.QueueDeleteOk)
        silent = other.connection if connection.finished else connection
        while silent.wait(_SILENCE):  # type: ignore[attr-defined]
            pass

    def empty(self) -> None:
        for connection in self.connections:
            self._queues |= connection.queues
            self._exchanges |= connection.exchanges
        deletions = [m.QueueDelete(queue=each) for each in self._queues]
        deletions += [m.ExchangeDelete(exchange=each) for each in self._exchanges if each[:4] != "amq."]
        for deletion in deletions:
            other = self._other()
            other.send(deletion)
            if isinstance(other.take_frame().method, m.ChannelClose):
                other.send(m.ChannelCloseOk())
                other.open_channel()
        self._queues.clear()
        self._exchanges.clear()


def _kind(octets: bytes) -> int:
    if octets[0] in (2, 3) or octets[7:11] == _BASIC_PUBLISH:
        return _PUBLISH
    whole = len(octets) == 8 + int.from_bytes(octets[3:7], "big") and octets[0] == 1
    return _ANSWERED if octets.startswith(b"AMQP") or (whole and octets[7:11] in _AT_ONCE) else _OTHER


def _erlang(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


class NodeConnection(SocketConnection):
    """One socket to a node, which is quiet after each send."""

    def __init__(self, node: Node) -> None:
        super().__init__(*node.address)
        self._node = node
        self.port = self.socket.getsockname()[1]
        self.octets_sent = 0
        self.queues: set[str] = set()
        self.exchanges: set[str] = set()
        """What it has asked for."""
        self._seen = -1
        self._kind = _OTHER
        self._publishes = 0
        self._answered = False
        self.clean = False
        """What was sent last has no effects that are still to come."""
        node.connections.append(self)
        node.opened(self.port)

    @property
    def personality(self) -> Personality:
        return self._node.personality

    def wait(self, seconds: float | None = None) -> bool:
        """Take in what comes next. A reset behind bytes is the end: RabbitMQ ends sockets with resets."""
        more = super().wait(seconds)
        if self.aborted and self._octets[:-1]:
            self.aborted, self.finished = False, True
        return more

    def receive(self, octets: bytes) -> None:
        """Send bytes. Unless they publish, or are answered at once, all that they cause has happened then."""
        if self.finished or self.aborted:
            return
        kind = _kind(octets)
        if kind == _PUBLISH and octets[0] == 1:
            self._publishes += 1
            kind = _OTHER if self._publishes < _SINGLY else kind
        if self._node.unsettled is not self or not kind == self._kind == _PUBLISH:
            self._node.settle_last()
        super().receive(octets)
        self.octets_sent += len(octets)
        self._note(octets)
        self._node.sent += 1
        self._node.unsettled = self
        self._kind = kind
        self.clean = octets[7:11] == _TUNE_OK
        if kind == _OTHER:
            self._node.settle_last()

    def settle(self) -> None:
        """Read all that the node has written once it is quiet."""
        self._node.settle(self)
        self._seen = self._node.sent

    def _note(self, octets: bytes) -> None:
        """Note the queues and exchanges that a frame declares: a ticket, then the name."""
        kept = _DECLARES.get(octets[7:11])
        if kept is not None:
            name = octets[14 : 14 + int.from_bytes(octets[13:14], "big")]
            getattr(self, kept).add(name.decode(errors="surrogateescape"))

    def take_answer(self) -> None:
        """Take in the answer to what was sent last, without a wait for all else that the node does."""
        if self._kind == _ANSWERED and self._node.unsettled is self and not (self._octets or self.clean):
            self._answered = self.wait(_SOON)
            self.clean = self._answered and self._octets[0][7:11] not in _CLOSES

    def pending(self) -> list[bytes]:
        if self._answered:
            self._answered = False
            return super().pending()
        self._node.settle_last()
        if self._seen != self._node.sent and not (self.finished or self.aborted):
            self.settle()
        return super().pending()

    def receive_eof(self) -> None:
        self._node.settle_last()
        self.close()
        self.finished = True
        self._node.sent += 1
        self._node.settle(self)

    def __getattr__(self, name: str) -> NoReturn:
        raise Missing("inspection")


class _State:
    """What tests may ask of the state of a node: the personality."""

    def __init__(self, node: Node) -> None:
        self.personality = node.personality

    def __getattr__(self, name: str) -> NoReturn:
        raise Missing(need_of_state(name))


class NodeServer(Server):
    """A node instead of a broker without sockets."""

    node: Node

    def __init__(
        self,
        name: str | Personality | None = None,
        *,
        protocol: str = "0-9-1",
        tickets: bool = True,
        **settings: Any,
    ) -> None:
        node = self.node
        if name not in (None, node.personality.name, node.personality):
            raise Missing(need_of_personality(name))
        if settings:
            raise Missing("settings")
        node.reset()  # A new broker is empty.
        self.protocol = protocol
        self.state: Any = _State(node)

    @property
    def clock(self) -> NoReturn:  # type: ignore[override]
        raise Missing("virtual time")

    def varied(self, **choices: Any) -> Server:
        if choices:
            raise Missing("personality of choices")
        return Server(protocol=self.protocol)

    @property
    def vhost(self) -> NoReturn:
        raise Missing("inspection")

    def advance(self, seconds: float) -> NoReturn:
        raise Missing("virtual time")

    def wait(self, connection: Any) -> bool:
        return bool(connection.wait())

    def take_answer(self, connection: Any) -> None:
        connection.take_answer()

    def wait_for_end(self, connection: Any) -> None:
        while connection.wait():
            pass

    def restart(self, *, crash: bool = False) -> NoReturn:
        raise Missing("restart")

    def accept(self, peer: PeerAddress, use: Callable[[Connection], None]) -> Connection:
        return NodeConnection(self.node)  # type: ignore[return-value]

    def client(self, *, channels: int = 1, **handshake: Any) -> Client:
        return super().client(channels=channels, **{**self.node.login, **handshake})

    def connect(self, **peer: Any) -> Client:
        if peer:
            raise Missing("addresses of peers")
        return super().connect()


def started(name: str) -> Node:
    """A node with the behaviour of this personality, or the one at this address."""
    if "://" in name:
        return RunningNode(name)
    series = name.removeprefix("rabbitmq-")
    if (reason := available(series)) is not None:
        pytest.exit(f"--on {name}: {reason}", returncode=pytest.ExitCode.USAGE_ERROR)
    return OwnNode(series, name)
