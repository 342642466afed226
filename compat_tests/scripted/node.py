"""The raw client on a node of RabbitMQ: what `Server` and its connections are without sockets, over sockets.

Theory of operation. A broker without a runtime has done all there is to do when `receive` returns, and
tests rely on it: they look at what has come, and at what has not. A node does its work some time later, in
processes of its own. So a connection to a node waits after each send until the node is quiet: the node has
read every byte of the connection, no process of it runs or has a message in its mailbox, and all that it
has written is read here. The node itself says so (`_MODULE`), which takes some milliseconds and no guess of
a time. Publishes in a row are sent without a wait. What a node does later on its own, such as an election,
is waited for where a frame is expected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from compat_tests.differential.comparison import PLUGINS
from compat_tests.differential.rabbitmq_node import RabbitMQNode, available
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.needs import Missing, need_of_personality, need_of_state
from compat_tests.scripted.sockets import SocketConnection
from fakeamqp.connection import Connection, PeerAddress
from fakeamqp.model.personality import Personality, personality

# The class and the method of basic.publish.
_PUBLISH = b"\0\x3c\0\x28"

# `settle(Port, Octets)` waits until the node is quiet and has read so many bytes of the client at this port,
# or reads no more of them. It returns whether the socket is open, and how many bytes were written to it.
# Three looks in a row must find every process waiting: what one has sent to another shows in the next.
_MODULE = """
-module(fakeamqp_quiet).

-export([opened/1, settle/2, quiet/0, reset/0]).

opened(Port) ->
    case find(Port) of
        none -> receive after 1 -> ok end, opened(Port);
        _ -> quiet()
    end.

settle(Port, Octets) ->
    arrive(Port, Octets, 300),
    quiet(),
    case find(Port) of
        none -> {closed, 0};
        Socket ->
            {ok, [{send_oct, Sent}]} = inet:getstat(Socket, [send_oct]),
            {open, Sent}
    end.

arrive(_, _, 0) -> ok;
arrive(Port, Octets, Rounds) ->
    case find(Port) of
        none -> ok;
        Socket ->
            case inet:getstat(Socket, [recv_oct]) of
                {ok, [{recv_oct, Read}]} when Read < Octets ->
                    receive after 1 -> ok end,
                    arrive(Port, Octets, Rounds - 1);
                _ -> ok
            end
    end.

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

quiet() -> quiet(3, 5000).

quiet(0, _) -> ok;
quiet(_, 0) -> {busy, [{P, erlang:process_info(P, [message_queue_len, status, current_function])}
                       || P <- erlang:processes(), P =/= self(), not idle(P)]};
quiet(Looks, Rounds) ->
    case lists:all(fun idle/1, erlang:processes() -- [self()]) of
        true -> receive after 1 -> ok end, quiet(Looks - 1, Rounds);
        false -> receive after 1 -> ok end, quiet(3, Rounds - 1)
    end.

idle(Process) ->
    case erlang:process_info(Process, [message_queue_len, status]) of
        undefined -> true;
        [{message_queue_len, 0}, {status, waiting}] -> true;
        _ -> false
    end.

reset() ->
    User = <<"fakeamqp">>,
    [rabbit_networking:close_connection(P, "reset") || P <- rabbit_networking:connections()],
    quiet(),
    [catch rabbit_amqqueue:delete(Q, false, false, User) || Q <- rabbit_amqqueue:list()],
    [rabbit_exchange:delete(element(2, X), false, User)
     || X <- rabbit_exchange:list(), not predeclared(element(2, X))],
    quiet().

predeclared({resource, _, exchange, <<>>}) -> true;
predeclared({resource, _, exchange, <<"amq.", _/binary>>}) -> true;
predeclared(_) -> false.
"""


class Node:
    """A node of RabbitMQ, and what the raw client asks of it beside its connections."""

    def __init__(self, node: RabbitMQNode, name: str) -> None:
        self.node = node
        self.personality = personality(name)
        self.connections: list[NodeConnection] = []
        self.unsettled: NodeConnection | None = None
        self.sent = 0
        """How often something was sent."""
        self.server = NodeServer
        forms = ", ".join(f'"{_erlang(form)}"' for form in _MODULE.split("\n\n"))
        self.node.evaluate(
            "Parse = fun(T) -> {ok, Ts, _} = erl_scan:string(T), {ok, F} = erl_parse:parse_form(Ts), F end, "
            f"{{ok, M, B}} = compile:forms([Parse(T) || T <- [{forms}]]), "
            'code:load_binary(M, "fakeamqp_quiet", B)'
        )

    def stop(self) -> None:
        """Stop the node."""
        self.node.stop()

    def opened(self, port: int) -> None:
        """Wait until the node has accepted the connection of a client at this port."""
        assert self.node.evaluate(f"fakeamqp_quiet:opened({port})") == "ok"

    def settle(self, port: int, octets: int) -> tuple[bool, int]:
        """Wait until the node is quiet; whether it has the socket of this client, and what it wrote to it."""
        answer = self.node.evaluate(f"fakeamqp_quiet:settle({port}, {octets})")
        state, _, sent = answer.strip("{}").partition(",")
        return state == "open", int(sent)

    def settle_last(self) -> None:
        """Let what was sent last have all its effects."""
        connection, self.unsettled = self.unsettled, None
        if connection is not None:
            connection.settle()

    def reset(self) -> None:
        """Close all connections, and delete all queues and exchanges that are not there from the start."""
        if not self.connections:
            return
        for connection in self.connections:
            connection.close()
        self.connections.clear()
        self.unsettled = None
        answer = self.node.evaluate("fakeamqp_quiet:reset()")
        assert answer == "ok", f"the node does not come to rest: {answer}"


def _erlang(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


class NodeConnection(SocketConnection):
    """One socket to a node, which is quiet after each send."""

    def __init__(self, node: Node) -> None:
        super().__init__("127.0.0.1", node.node.port)
        self._node = node
        self._port = self.socket.getsockname()[1]
        self._sent = 0
        self._seen = -1
        node.connections.append(self)
        node.opened(self._port)

    @property
    def personality(self) -> Personality:
        return self._node.personality

    def receive(self, octets: bytes) -> None:
        """Send bytes. Unless they publish, all that they cause has happened when this returns."""
        if self.finished or self.aborted:
            return
        publishes = octets[0] in (2, 3) or octets[7:11] == _PUBLISH
        if not publishes or self._node.unsettled is not self:
            self._node.settle_last()
        super().receive(octets)
        self._sent += len(octets)
        self._node.sent += 1
        self._node.unsettled = self
        if not publishes:
            self._node.settle_last()

    def settle(self) -> None:
        """Read all that the node has written once it is quiet."""
        there, written = self._node.settle(self._port, self._sent)
        while (not there or self.received < written) and self.wait():
            pass
        self._seen = self._node.sent

    def pending(self) -> list[bytes]:
        self._node.settle_last()
        if self._seen != self._node.sent and not (self.finished or self.aborted):
            self.settle()
        return super().pending()

    def receive_eof(self) -> None:
        self._node.settle_last()
        self.close()
        self.finished = True
        self._node.sent += 1
        self._node.settle(self._port, 0)

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

    def wait_for_end(self, connection: Any) -> None:
        while connection.wait():
            pass

    def restart(self, *, crash: bool = False) -> NoReturn:
        raise Missing("restart")

    def accept(self, peer: PeerAddress, use: Callable[[Connection], None]) -> Connection:
        return NodeConnection(self.node)  # type: ignore[return-value]

    def connect(self, **peer: Any) -> Client:
        if peer:
            raise Missing("addresses of peers")
        return super().connect()


def started(name: str) -> Node:
    """A node with the behaviour of this personality."""
    series = name.removeprefix("rabbitmq-")
    if (reason := available(series)) is not None:
        pytest.exit(f"--on {name}: {reason}", returncode=pytest.ExitCode.USAGE_ERROR)
    rabbitmq = RabbitMQNode(series, plugins=PLUGINS)
    rabbitmq.start()
    NodeServer.node = Node(rabbitmq, name)
    return NodeServer.node
