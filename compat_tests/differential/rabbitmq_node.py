"""A private RabbitMQ node for tests that compare the broker with the original.

Nothing here is needed to use the library, and every test that wants a node asks :func:`available` first.
The node shares nothing with an installed one: it has its own name, ports, port mapper (epmd), cookie and
data folder, listens on 127.0.0.1 only, and runs as the current user, without any plugin unless asked for.
Several versions run side by side (`installations.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from typing_extensions import Self

from compat_tests.differential import installations
from compat_tests.tools.loopback import free_ports

__all__ = ["RabbitMQError", "RabbitMQNode", "available"]

_PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
# connection.start as the first frame: type 1, channel 0, size, class 10, method 10.
_START_FRAME = (b"\x01\x00\x00", b"\x00\x0a\x00\x0a")
_POLL = 0.05
_PORT_IN_USE = ("dist_port_already_used", "eaddrinuse")
"""What the log of a node has that found the port of its distribution, or of a listener, in use."""

# A process of the node that evaluates Erlang expressions. It outlives the application `rabbit`.
_EVALUATOR = """
Asker = self(),
spawn(fun() ->
    group_leader(whereis(init), self()),
    {ok, L} = gen_tcp:listen(0, [binary, {packet, 4}, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(L),
    Asker ! {evaluator, Port},
    Answer = fun(S, Text) ->
        Result = try
            {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text)),
            {ok, Expressions} = erl_parse:parse_exprs(Tokens),
            {value, Value, _} = erl_eval:exprs(Expressions, []),
            io_lib:format("ok ~0tp", [Value])
        catch
            Class:Reason -> io_lib:format("~0tp", [{Class, Reason}])
        end,
        gen_tcp:send(S, unicode:characters_to_binary(Result))
    end,
    Serve = fun Next() ->
        {ok, S} = gen_tcp:accept(L),
        Server = spawn(fun() ->
            receive go -> ok end,
            case gen_tcp:recv(S, 0) of
                {ok, <<"SECRET", Text/binary>>} -> Answer(S, Text);
                _ -> refused
            end,
            gen_tcp:close(S)
        end),
        ok = gen_tcp:controlling_process(S, Server),
        Server ! go,
        Next()
    end,
    Serve()
end),
receive {evaluator, Port} -> Port end.
"""


class RabbitMQError(Exception):
    """The node could not be started, or a control command failed. The text holds the node's own output."""


class _PortInUse(RabbitMQError):
    """Another process listens on one of the ports of the node."""


def available(version: str | None = None) -> str | None:
    """Why no node can be started on this machine, or None when one can.

    Without a version this is about the installed package. With the name of a series, such as ``4.3``, a
    package of Debian's archive will do, and is unpacked if it has not been.
    """
    return installations.obstacle(version)


class RabbitMQNode:
    """A RabbitMQ node that lives as long as the ``with`` block.

    ``version`` is the name of a series, such as ``4.3`` (default: the installed package, whatever it is).
    ``port`` fixes the AMQP port (default: a free one). ``settings`` are lines of ``rabbitmq.conf``, such as
    ``{"channel_max": "10"}``, ``plugins`` the names of those to enable. ``timeout`` is the limit in seconds
    for the start and, again, for the stop. ``variables`` are those of the Erlang application ``rabbit`` that
    ``rabbitmq.conf`` has no key for, such as ``{"channel_tick_interval": "1000"}``. ``spins`` lets idle
    schedulers spin, as they do by default: some throughput for a busy processor. Raises
    :class:`RabbitMQError` when the node does not come up.
    """

    def __init__(
        self,
        version: str | None = None,
        *,
        port: int | None = None,
        settings: Mapping[str, str] | None = None,
        plugins: Iterable[str] = (),
        variables: Mapping[str, str] | None = None,
        timeout: float = 90.0,
        spins: bool = False,
    ) -> None:
        try:
            self._installation = installations.find(version)
        except installations.Unavailable as reason:
            raise RabbitMQError(str(reason)) from None
        self._settings = dict(settings or {})
        self._plugins = tuple(plugins)
        self.variables = dict(variables or {})
        self._timeout = timeout
        self._spins = spins
        self._folder: Path | None = None
        self._environment: dict[str, str] = {}
        self._evaluator: tuple[int, bytes] | None = None
        self._evaluator_lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._port_mapper: subprocess.Popen[bytes] | None = None
        self._fixed_port = port
        self._take_ports()
        self.name = f"fakeamqp-{secrets.token_hex(6)}@localhost"

    def _take_ports(self) -> None:
        free, self._distribution_port, self._epmd_port = free_ports(3)
        self.port = free if self._fixed_port is None else self._fixed_port

    @property
    def url(self) -> str:
        """The node's address with the default account and virtual host."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    @property
    def version(self) -> str:
        """The version of the node, such as ``3.10.8``."""
        return self._installation.version

    @property
    def pid(self) -> int | None:
        """The process id (also the process group) of the server script; None while the node is down."""
        return None if self._server is None else self._server.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the node and wait until it answers a protocol header with connection.start.

        Where another process has taken one of its ports meanwhile, it starts once more, with other ports.
        """
        if self._server is not None:
            raise RabbitMQError("the node is running already")
        try:
            self._start()
        except _PortInUse:
            self._take_ports()
            self._start()

    def _start(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="fakeamqp-rabbitmq-"))
        self._folder = folder
        try:
            self._environment = self._prepare(folder)
            with (folder / "output").open("wb") as output:
                if self._installation.root is None:
                    self._start_port_mapper(output)
                self._server = subprocess.Popen(
                    self._installation.server(folder),
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    env=self._environment,
                    cwd=folder,
                    start_new_session=True,
                )
            self._await_ready()
        except BaseException:
            self.stop()
            raise

    def _start_port_mapper(self, output: IO[bytes]) -> None:
        epmd = installations.epmd()
        assert epmd is not None
        # In the foreground, as a child: a daemon of its own could not be told from the system's.
        self._port_mapper = subprocess.Popen(
            [epmd, "-port", str(self._epmd_port), "-address", "127.0.0.1"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=self._environment,
        )
        self._await_port(self._epmd_port, self._port_mapper, time.monotonic() + self._timeout)

    def stop(self) -> None:
        """Stop the node and its epmd and remove their folder; nothing happens when it is down."""
        self._evaluator = None
        server, self._server = self._server, None
        port_mapper, self._port_mapper = self._port_mapper, None
        folder, self._folder = self._folder, None
        try:
            if server is not None:
                self._end_group(server)
        finally:
            if port_mapper is not None:
                port_mapper.kill()
                port_mapper.wait()
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def control(self, *arguments: str) -> str:
        """Run ``rabbitmqctl`` with these arguments and return its output.

        A call costs a second or more; ``control("eval", "...")`` does several things in one.
        Raises :class:`RabbitMQError` when the command fails.
        """
        done = subprocess.run(
            [*self._installation.control(self._running()), "-q", "-n", self.name, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
            timeout=self._timeout,
            check=False,
        )
        text = done.stdout.decode(errors="replace")
        if done.returncode != 0:
            raise RabbitMQError(f"rabbitmqctl {' '.join(arguments)} failed ({done.returncode}):\n{text}")
        return text

    def evaluate(self, expressions: str) -> str:
        """Evaluate Erlang expressions in the node, and return the last value as Erlang writes it.

        This does what ``rabbitmqctl`` has the node do, in milliseconds: the first call starts a process of
        the node that takes expressions over a socket of its own. Raises :class:`RabbitMQError` when they
        fail.
        """
        with self._evaluator_lock:
            if self._evaluator is None:
                secret = secrets.token_hex(16)
                port = int(self.control("eval", _EVALUATOR.replace("SECRET", secret)))
                self._evaluator = port, secret.encode()
        port, token = self._evaluator
        asked = token + expressions.encode() + b"."
        with socket.create_connection(("127.0.0.1", port), timeout=self._timeout) as client:
            client.sendall(struct.pack(">I", len(asked)) + asked)
            with client.makefile("rb") as answer:
                text = answer.read()[4:].decode(errors="replace")
        state, _, value = text.partition(" ")
        if state != "ok":
            raise RabbitMQError(f"{expressions} failed:\n{text}")
        return value

    def import_definitions(self, definitions: Mapping[str, Any]) -> None:
        """Have the node load definitions, as RabbitMQ exports them."""
        file = self._exchanged()
        file.write_text(json.dumps(definitions))
        self.control("import_definitions", str(self._installation.seen(self._running()) / file.name))

    def export_definitions(self) -> dict[str, Any]:
        """The definitions of the node."""
        file = self._exchanged()
        self.control("export_definitions", str(self._installation.seen(self._running()) / file.name))
        definitions: dict[str, Any] = json.loads(file.read_text())
        return definitions

    def _exchanged(self) -> Path:
        return self._running() / f"definitions-{secrets.token_hex(4)}.json"

    def _running(self) -> Path:
        if self._folder is None:
            raise RabbitMQError("the node is down")
        return self._folder

    def log(self) -> str:
        """What the node has written to its log so far."""
        if self._folder is None:
            return ""
        files = [self._folder / "output", *sorted((self._folder / "log").glob("*.log"))]
        return "".join(file.read_text(errors="replace") for file in files if file.is_file())

    def _prepare(self, folder: Path) -> dict[str, str]:
        for name in ("log", "mnesia", "home"):
            (folder / name).mkdir()
        (folder / "environment.conf").write_text("")
        (folder / "enabled_plugins").write_text(f"[{','.join(self._plugins)}].\n")
        cookie = folder / "home" / ".erlang.cookie"
        cookie.write_text(secrets.token_hex(20))
        cookie.chmod(0o400)
        settings = {
            "listeners.tcp.1": f"127.0.0.1:{self.port}",
            # Neither alarm may fire because the machine is busy with something else.
            "disk_free_limit.absolute": "1MB",
            "vm_memory_high_watermark.absolute": "2GB",
            **self._settings,
        }
        configuration = folder / "rabbitmq.conf"
        configuration.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        seen = self._installation.seen(folder)
        return {
            **self._inherited(),
            "HOME": str(seen / "home"),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_CONF_ENV_FILE": str(seen / "environment.conf"),
            "RABBITMQ_CONFIG_FILE": str(seen / configuration.name),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(seen / "enabled_plugins"),
            "RABBITMQ_FEATURE_FLAGS_FILE": str(seen / "feature_flags"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(seen / "generated"),
            "RABBITMQ_LOG_BASE": str(seen / "log"),
            "RABBITMQ_MNESIA_BASE": str(seen / "mnesia"),
            "RABBITMQ_PID_FILE": str(seen / "pid"),
            # Idle schedulers sleep instead of spinning: tests share the machine with the node.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}"
            + "".join(f" -rabbit {name} {value}" for name, value in self.variables.items())
            + ("" if self._spins else " +sbwt none +sbwtdcpu none +sbwtdio none"),
        }

    def _inherited(self) -> dict[str, str]:
        if self._installation.root is not None:
            return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
        return {key: value for key, value in os.environ.items() if not key.startswith(("RABBITMQ_", "ERL_"))}

    def _await_ready(self) -> None:
        assert self._server is not None
        deadline = time.monotonic() + self._timeout
        while True:
            self._await_port(self.port, self._server, deadline)
            if self._answers(deadline):
                return
            time.sleep(_POLL)

    def _await_port(self, port: int, process: subprocess.Popen[bytes], deadline: float) -> None:
        while True:
            if process.poll() is not None:
                log = self.log()
                kind = _PortInUse if any(sign in log for sign in _PORT_IN_USE) else RabbitMQError
                raise kind(f"the node ended with code {process.returncode}:\n{log}")
            if time.monotonic() >= deadline:
                raise RabbitMQError(f"the node did not listen within {self._timeout:g} s:\n{self.log()}")
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(_POLL)

    def _answers(self, deadline: float) -> bool:
        """True when the listener opens a conversation; it may listen a moment before it can."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as client:
                client.settimeout(max(0.1, min(5.0, deadline - time.monotonic())))
                client.sendall(_PROTOCOL_HEADER)
                answer = b""
                while len(answer) < 11:
                    octets = client.recv(4096)
                    if not octets:
                        return False
                    answer += octets
        except OSError:
            return False
        return answer[:3] == _START_FRAME[0] and answer[7:11] == _START_FRAME[1]

    def _end_group(self, server: subprocess.Popen[bytes]) -> None:
        """End the server script and all it started; they form the process group of the script.

        An unpacked node has its own namespace, and ends with it when the input of its first process does.
        """
        assert server.stdin is not None
        server.stdin.close()
        if self._installation.root is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(self._timeout)
        for number, patience in ((signal.SIGTERM, self._timeout), (signal.SIGKILL, self._timeout)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, number)
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                server.poll()
                try:
                    os.killpg(server.pid, 0)
                except ProcessLookupError:
                    return
                time.sleep(_POLL)
