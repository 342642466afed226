"""The command `fakeamqp`: serve a broker, convert and replay recordings, run a demo, check the machine.

The exit code is 0 on success, 1 if an operation failed or a replay differs from its recording, and 2 if the
command line is invalid.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from io import TextIOWrapper
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from fakeamqp.errors import BrokerError, FakeAMQPError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fakeamqp import Bounds, Broker, ServerTLS
    from fakeamqp.settings import PersonalityChoices
    from fakeamqp.trace import Trace

_SIGPIPE = 128 + 13
"""The exit code of a program that a broken pipe has ended."""

DEFAULT_PORT = 5672
"""The port registered for AMQP."""

LARGEST_MESSAGE = 128 * 1024 * 1024
"""RabbitMQ's limit in bytes before 4.0 lowered it to 16 MiB: clients of `serve` may be written for either."""

CLOCKS = ("real", "virtual", "wall")

_EVENTS_SHOWN = _HISTORY_SHOWN = 10_000
"""Events of the trace and publishes that the inspector page of `serve` can show."""

_LOG_PATIENCE = 2.0
"""Seconds that `serve`, once it has stopped, waits for its log to be read."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of `sys.argv`, and return its exit code; or raise SystemExit."""
    options = _parser().parse_args(arguments)
    if isinstance(sys.stdout, TextIOWrapper):
        # Names of queues have characters that the console of Windows may not have.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _COMMANDS[options.command](options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe. Without this Python would report an error at exit,
        # when it flushes the rest of the output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE
    except _UsageError as error:
        print(f"fakeamqp {options.command}: {error}", file=sys.stderr)
        return 2
    except (FakeAMQPError, OSError) as error:
        print(f"fakeamqp {options.command}: {error}", file=sys.stderr)
        return 1


class _UsageError(Exception):
    """The command line is invalid; the text says what to change."""


class _Version(argparse.Action):
    """Prints the version. The lookup is done on demand, because it costs more than parsing."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"fakeamqp {_version('fakeamqp')}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    port = partial(_number, what="a port: ports are 0 to 65535", least=0, most=65535)
    parser = argparse.ArgumentParser(prog="fakeamqp", description="A real AMQP broker for tests.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    repeated: dict[str, Any] = {"action": "append", "default": []}
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = commands.add_parser(
        "serve",
        help="run a broker until SIGINT or SIGTERM",
        description="Run a broker until SIGINT or SIGTERM. Once it is ready it prints the line "
        "'listening on amqp://guest:guest@127.0.0.1:PORT/%2F'. Its queues and messages are lost when "
        "it ends.",
    )
    serve.add_argument(
        "--host",
        default="localhost",
        help="address to listen on (default: %(default)s, which is 127.0.0.1 and ::1)",
    )
    serve.add_argument(
        "--port",
        type=port,
        default=DEFAULT_PORT,
        help="port to listen on; 0 takes a free one (default: %(default)s)",
    )
    serve.add_argument(
        "--personality",
        default="rabbitmq-4.3",
        metavar="NAME",
        help="behaviour to emulate: rabbitmq-3.10, rabbitmq-3.13, rabbitmq-4.0, rabbitmq-4.1, rabbitmq-4.2, "
        "rabbitmq-4.3 or spec (default: %(default)s)",
    )
    serve.add_argument(
        "--permit",
        **repeated,
        metavar="FEATURE",
        help="permit this deprecated feature although the personality denies it, such as global_qos in "
        "rabbitmq-4.3; can be repeated",
    )
    serve.add_argument(
        "--deny",
        **repeated,
        metavar="FEATURE",
        help="deny this deprecated feature although the personality permits it, such as "
        "transient_nonexcl_queues; can be repeated",
    )
    serve.add_argument(
        "--clock",
        default="real",
        metavar="MODE",
        help="source of the broker's time: real, wall, or virtual, which needs --control-port or "
        "--clock-rate (default: %(default)s)",
    )
    serve.add_argument(
        "--clock-rate",
        type=_rate,
        metavar="FACTOR",
        help="seconds that pass on a virtual clock per real second, such as 60",
    )
    serve.add_argument(
        "--tls",
        action="store_true",
        help="use TLS with a temporary certificate (needs fakeamqp[tls])",
    )
    serve.add_argument(
        "--tls-certificate",
        metavar="FILE",
        help="use TLS with this certificate (PEM, with its intermediates); needs --tls-key",
    )
    serve.add_argument("--tls-key", metavar="FILE", help="private key of --tls-certificate (PEM)")
    serve.add_argument(
        "--tls-ca",
        metavar="FILE",
        help="authority that signed --tls-certificate (PEM), for clients to trust",
    )
    serve.add_argument(
        "--tls-client-ca",
        metavar="FILE",
        help="verify client certificates with this authority (PEM); clients without one are accepted",
    )
    serve.add_argument(
        "--definitions", metavar="FILE", help="RabbitMQ definitions file (JSON) to load before listening"
    )
    serve.add_argument(
        "--max-message-size",
        type=partial(_number, what="a number of bytes"),
        metavar="OCTETS",
        default=LARGEST_MESSAGE,
        help="size of the largest message accepted, RabbitMQ's max_message_size (default: %(default)s)",
    )
    serve.add_argument(
        "--memory-limit",
        type=_memory_limit,
        metavar="OCTETS",
        default="auto",
        help="bytes of messages above which publishers are blocked, or none for no limit (default: auto, the "
        "smaller of 1 GiB and 40 %% of the machine's memory)",
    )
    serve.add_argument(
        "--bound",
        **repeated,
        type=_bound,
        metavar="NAME=NUMBER",
        help="another value for one of the bounds on docs/limits.md, such as consumers_per_channel=100; can "
        "be repeated",
    )
    serve.add_argument(
        "--loopback-users",
        metavar="NAMES",
        default="guest",
        help="users that may log in from this machine only, separated by commas, or none (default: guest, as "
        "in RabbitMQ)",
    )
    serve.add_argument(
        "--max-failed-logins",
        type=partial(_number, what="a number of logins", least=0),
        metavar="COUNT",
        help="failed logins in a row with which an address is blocked; 0 blocks none (default: that of the "
        "personality, which is 0 for RabbitMQ and 100 for spec)",
    )
    serve.add_argument(
        "--login-block-time",
        type=_rate,
        metavar="SECONDS",
        help="time for which such an address is blocked (default: 60)",
    )
    serve.add_argument(
        "--not-implemented",
        **repeated,
        metavar="NAME",
        help="refuse this class or method, such as tx or channel.resume, as not implemented (540); can be "
        "repeated",
    )
    serve.add_argument(
        "--management-port",
        type=port,
        metavar="PORT",
        help="serve RabbitMQ's HTTP API on this port; 0 takes a free one (needs fakeamqp[management])",
    )
    serve.add_argument(
        "--management-host",
        **repeated,
        metavar="NAME",
        help="a name by which HTTP may be asked, besides IP addresses and the names of this machine; "
        "can be repeated",
    )
    serve.add_argument(
        "--control-port",
        type=port,
        metavar="PORT",
        help="serve the control interface, with which tests in other processes use faults, clock and "
        "assertions, on this port; 0 takes a free one (needs fakeamqp[management])",
    )

    trace = commands.add_parser(
        "trace",
        help="show or convert a recording",
        description="Show a recording, written by trace.jsonl(FILE), as a timeline; or convert it to the "
        "formats that the options name.",
    )
    trace.add_argument("file", metavar="FILE", help="the recording (JSON Lines)")
    trace.add_argument(
        "--connection", metavar="NAME", help="only this connection, by its name or its short name, such as c1"
    )
    trace.add_argument(
        "--limit",
        type=partial(_number, what="a number of events"),
        metavar="COUNT",
        help="only the latest COUNT lines (of other formats: events)",
    )
    trace.add_argument("--html", metavar="OUT", help="write an HTML page")
    trace.add_argument("--pcapng", metavar="OUT", help="write a packet capture for Wireshark")
    trace.add_argument("--parquet", metavar="OUT", help="write a Parquet table (needs fakeamqp[trace])")

    replay = commands.add_parser(
        "replay",
        help="repeat the client side of a recording and compare the answers",
        description="Send the client side of a recording to a broker, in the recorded order, and compare its "
        "answers with the recorded ones. Prints the differences by connection. The exit code is 0 without "
        "differences and 1 with differences.",
    )
    replay.add_argument("file", metavar="FILE", help="the recording (JSON Lines)")
    replay.add_argument(
        "--url",
        metavar="URL",
        help="broker to replay to, such as amqp://guest:guest@localhost/; every connection logs in with the "
        "credentials of the URL (default: a new broker in this process)",
    )
    replay.add_argument(
        "--personality",
        metavar="NAME",
        help="behaviour of the new broker, such as spec (default: rabbitmq-4.3)",
    )
    replay.add_argument(
        "--definitions",
        metavar="FILE",
        help="RabbitMQ definitions file (JSON) that the new broker loads first",
    )
    replay.add_argument(
        "--timeout",
        type=_rate,
        default=5.0,
        metavar="SECONDS",
        help="maximum time to wait for an answer (default: %(default)s)",
    )

    commands.add_parser("demo", help="show in a few seconds how the broker behaves (needs fakeamqp[pika])")
    commands.add_parser("doctor", help="check whether brokers and clients can run on this machine")
    return parser


def _memory_limit(text: str) -> int | Literal["auto"] | None:
    if text == "auto":
        return "auto"
    return None if text == "none" else _number(text, "a number of bytes, nor none")


def _bound(text: str) -> tuple[str, int]:
    name, separator, number = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not a bound, such as consumers_per_channel=100")
    return name, _number(number, "a number above 0")


def _number(text: str, what: str, least: int = 1, most: float = inf) -> int:
    if not text.isdecimal() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return rate


# --- serve ------------------------------------------------------------------------------------------


def _serve(options: argparse.Namespace) -> int:
    import logging

    from fakeamqp.log_writer import LogWriter

    _check_serve_options(options)
    log = LogWriter(logging.StreamHandler())
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", handlers=[log])
    code = 1
    try:
        with _StopSignals() as signals:
            broker = _configured_broker(options)
            if options.clock_rate is not None:
                broker.clock.rate = options.clock_rate
            with broker:
                _tune_garbage_collection()
                url, remark = _url(broker)
                if options.management_port is not None:
                    print(f"management API on {_management_url(broker, url)}", flush=True)
                if options.control_port is not None:
                    print(f"control interface on {broker.control_url}", flush=True)
                if _is_inspected(options):
                    print(f"inspector on {broker.inspector_url}", flush=True)
                print(f"listening on {url}", flush=True)
                if remark:
                    logging.getLogger("fakeamqp").warning(remark)
                if url.startswith("amqps:"):
                    print(f"certificate authority in {broker.tls.ca_file}", flush=True)
                signals.wait()
        code = 0
    finally:
        if not log.finish(_LOG_PATIENCE):
            # Standard error is a pipe that is not read. The interpreter would wait for it at its end.
            os._exit(code)
    return code


def _management_url(broker: Broker, url: str) -> str:
    """The URL of the HTTP API, with the account and the host of the broker's URL."""
    from urllib.parse import urlsplit

    account_and_host = urlsplit(url).netloc.rpartition(":")[0]
    return f"http://{account_and_host}:{broker.management_port}/api/"


def _url(broker: Broker) -> tuple[str, str]:
    """The URL of a broker. Without a login, and with the reason, if it knows the password of no account."""
    try:
        return broker.url, ""
    except BrokerError:
        return broker._url_with(""), (
            "the URL names no user, since the definitions contain only hashes of passwords; "
            "log in with a password of the broker that exported them"
        )


def _tune_garbage_collection() -> None:
    """Collect garbage less often, since the process holds messages and little garbage.

    With Python's thresholds full collections take more than half of the time of a million publishes, in
    pauses of up to 0.6 seconds (measured). The broker's cycles are few: those of connections that have ended.
    The first and the second generation stay small, so that their collections take a few milliseconds. PyPy
    collects in another way, and has nothing to tune.
    """
    import gc

    if not hasattr(gc, "freeze"):
        return
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 2, 200_000)


def _check_serve_options(options: argparse.Namespace) -> None:
    if options.clock not in CLOCKS:
        raise _UsageError(f"unknown clock {options.clock!r}{_did_you_mean(options.clock, CLOCKS)}")
    if options.clock == "virtual" and options.clock_rate is None and not _is_inspected(options):
        raise _UsageError(
            "--clock virtual: other processes cannot move this clock; add a --clock-rate, such as 60, "
            "or a --control-port, by which they can"
        )
    if options.clock != "virtual" and options.clock_rate is not None:
        raise _UsageError(f"--clock-rate needs --clock virtual, but the clock is {options.clock}")


def _is_inspected(options: argparse.Namespace) -> bool:
    """Whether the control interface and the inspector page are served."""
    return options.management_port is not None or options.control_port is not None


def _configured_broker(options: argparse.Namespace) -> Broker:
    from fakeamqp import Broker

    try:
        return Broker(
            host=options.host,
            port=options.port,
            personality=options.personality,
            permit=options.permit,
            deny=options.deny,
            clock=options.clock,
            tls=_tls(options),
            definitions=options.definitions,
            # No code in this process inspects the broker, but the control interface and the page do.
            history=_HISTORY_SHOWN if _is_inspected(options) else 0,
            trace=_EVENTS_SHOWN if _is_inspected(options) else 0,
            memory_limit=options.memory_limit,
            bounds=_bounds(options.bound),
            management_port=options.management_port,
            management_hosts=options.management_host,
            control_port=options.control_port,
            **_choices(options),
        )
    except FakeAMQPError as error:  # The broker has not started yet, so an argument is wrong.
        raise _UsageError(str(error)) from error


def _bounds(asked: Sequence[tuple[str, int]]) -> Bounds:
    """The bounds with those that the command line names."""
    from dataclasses import fields

    from fakeamqp import Bounds

    known = tuple(each.name for each in fields(Bounds))
    for name, _ in asked:
        if name not in known:
            raise _UsageError(f"--bound: there is no bound {name!r}{_did_you_mean(name, known)}")
    return Bounds(**dict(asked))


def _choices(options: argparse.Namespace) -> PersonalityChoices:
    """The choices of the personality that the command line overrides."""
    settings: PersonalityChoices = {"largest_message": options.max_message_size}
    users = options.loopback_users
    settings["loopback_users"] = () if users == "none" else tuple(name.strip() for name in users.split(","))
    if options.not_implemented:
        settings["not_implemented"] = tuple(options.not_implemented)
    if options.max_failed_logins is not None:
        settings["most_failed_logins"] = options.max_failed_logins
    if options.login_block_time is not None:
        settings["login_block_time"] = options.login_block_time
    return settings


def _tls(options: argparse.Namespace) -> bool | ServerTLS:
    """The argument `tls` of `Broker`. Raises _UsageError if an option is missing that another one needs."""
    if options.tls_certificate is None or options.tls_key is None:
        for name in ("certificate", "key", "ca", "client_ca"):
            if getattr(options, f"tls_{name}") is not None:
                option = f"--tls-{name}".replace("_", "-")
                raise _UsageError(f"{option} needs both --tls-certificate and --tls-key")
        return bool(options.tls)
    from fakeamqp import ServerTLS

    return ServerTLS.from_files(
        options.tls_certificate, options.tls_key, ca=options.tls_ca, client_ca=options.tls_client_ca
    )


class _StopSignals:
    """Waits for SIGINT, SIGTERM or Windows' SIGBREAK, also if the signal arrives early.

    The signals write to a socket instead of raising, so that none interrupts the broker while it starts or
    stops. After the first signal the process ends, and further ones are ignored.
    """

    def __enter__(self) -> _StopSignals:
        import signal
        import socket

        self._received = False
        self._signal = signal
        self._receiver, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        numbers = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGBREAK")]
        self._former = {number: signal.signal(number, lambda *_: None) for number in numbers if number}
        self._former_descriptor = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        return self

    def wait(self) -> None:
        self._receiver.recv(1)
        self._received = True

    def __exit__(self, *_: object) -> None:
        self._signal.set_wakeup_fd(self._former_descriptor)
        for number, handler in self._former.items():
            # While the interpreter shuts down, an ignored signal stays ignored; a handler would be lost.
            self._signal.signal(number, self._signal.SIG_IGN if self._received else handler)
        self._receiver.close()
        self._sender.close()


# --- trace and replay -------------------------------------------------------------------------------


def _trace(options: argparse.Namespace) -> int:
    trace = _recording(options.file)
    if options.connection is not None:
        names = dict.fromkeys(name for event in trace.events for name in (event.alias, event.connection))
        if options.connection not in names:
            known = [name for name in names if name]
            hint = _did_you_mean(options.connection, known) if known else "; it has no connections"
            raise _UsageError(f"the recording has no connection {options.connection!r}{hint}")
    written = False
    for form in ("html", "pcapng", "parquet"):
        path = getattr(options, form)
        if path is not None:
            getattr(_part(trace, options), form)(path)
            print(f"wrote {path}")
            written = True
    if not written:
        print(trace.timeline(limit=options.limit, connection=options.connection))
    return 0


def _part(trace: Trace, options: argparse.Namespace) -> Trace:
    """The part of a trace that the options select."""
    events = [
        event
        for event in trace.events
        if options.connection is None or options.connection in (event.alias, event.connection)
    ]
    dropped = trace.dropped
    if options.limit is not None:
        dropped += max(0, len(events) - options.limit)
        events = events[-options.limit :]
    return trace.of(events, dropped, wall_time=trace.wall_time, clock=trace.clock)


def _replay(options: argparse.Namespace) -> int:
    from fakeamqp.replay import NoBroker, replay

    for option in ("personality", "definitions"):
        if options.url is not None and getattr(options, option) is not None:
            raise _UsageError(f"--{option} configures a new broker and cannot be combined with --url")
    trace = _recording(options.file)
    try:
        outcome = replay(
            trace,
            url=options.url,
            personality=options.personality or "rabbitmq-4.3",
            definitions=options.definitions,
            timeout=options.timeout,
        )
    except NoBroker:
        raise
    except FakeAMQPError as error:  # Nothing has been sent yet, so an argument is wrong.
        raise _UsageError(str(error)) from error
    print(outcome)
    return 0 if outcome.same else 1


def _recording(path: str) -> Trace:
    from fakeamqp.trace import RecordingError, load

    try:
        return load(path)
    except (RecordingError, OSError) as error:
        raise _UsageError(str(error)) from error


# --- demo -------------------------------------------------------------------------------------------


def _demo(_: argparse.Namespace) -> int:
    try:
        import pika
        import pika.exceptions
    except ImportError:
        print(
            "fakeamqp demo: the demo uses pika; install it with: pip install 'fakeamqp[pika]'",
            file=sys.stderr,
        )
        return 1
    from fakeamqp import Broker

    with Broker() as broker:
        print(f"A broker runs in this process, at {broker.url}")
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        print("pika is connected to it over a socket, as to RabbitMQ.\n")

        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("greetings", durable=True)
        for body in (b"good morning", b"good day", b"good night"):
            channel.basic_publish("", "greetings", body, pika.BasicProperties(delivery_mode=2))
        print("pika published three messages, and the broker confirmed each of them.")
        print(f"The test sees: {broker.queue('greetings')!r}\n")

        method, _properties, body = channel.basic_get("greetings")
        channel.basic_nack(method.delivery_tag, requeue=True)
        method, _properties, again = channel.basic_get("greetings")
        print(f"A client got {body!r} and requeued it; it came again with redelivered={method.redelivered}.")
        channel.basic_ack(method.delivery_tag)
        assert again == body

        try:
            channel.queue_declare("no-such-queue", passive=True)
        except pika.exceptions.ChannelClosedByBroker as error:
            print(f"An error gets RabbitMQ's answer: {error.reply_code} {error.reply_text}\n")
        connection.close()

        broker.restart()
        print("The broker has restarted on the same port. Durable queues and persistent messages are kept:")
        print(f"The test sees: {broker.queue('greetings')!r}\n")

        lines = broker.trace.timeline().splitlines()
        print("The end of the timeline, as the report of a failing test shows it:")
        print("\n".join(f"    {line}" for line in lines[-12:]))
    print("\nThe broker has stopped. Its port, sockets and threads are gone.")
    return 0


# --- doctor -----------------------------------------------------------------------------------------

_LIBRARIES = (
    ("pika", "pip install 'fakeamqp[pika]'"),
    ("aio-pika", "pip install 'fakeamqp[aio-pika]'"),
    ("amqp", "pip install amqp"),
    ("kombu", "pip install kombu"),
    ("celery", "pip install celery"),
    ("amqpstorm", "pip install amqpstorm"),
    ("pytest", "pip install 'fakeamqp[pytest]'"),
    ("pytest-asyncio", "pip install pytest-asyncio"),
    ("anyio", "pip install anyio"),
    ("trustme", "pip install 'fakeamqp[tls]'"),
    ("pyarrow", "pip install 'fakeamqp[trace]'"),
    ("pyspark", "pip install 'fakeamqp[spark]'"),
)


def _doctor(_: argparse.Namespace) -> int:
    findings = list(_findings())
    width = max(len(subject) for _, subject, _ in findings)
    for verdict, subject, words in findings:
        print(f"{verdict:<8} {subject:<{width}}  {words}")
    failed = [subject for verdict, subject, _ in findings if verdict == "failed"]
    print()
    if failed:
        print(f"Not ready: {', '.join(failed)}.")
        return 1
    print("Ready: brokers can run here. Missing packages are optional.")
    return 0


def _findings() -> Iterator[tuple[str, str, str]]:
    """Tuples of verdict ("ok", "missing" or "failed"), subject, and details."""
    running = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info >= (3, 10):  # noqa: UP036 - a checkout can be run without pip's own check
        yield "ok", "Python", f"{running} at {sys.executable}"
    else:
        yield "failed", "Python", f"{running} is too old; 3.10 or later is needed"
    yield "ok", "fakeamqp", _version("fakeamqp") or "not installed; imported from a folder"
    yield _loopback("IPv4 loopback", "127.0.0.1", "failed")
    yield _loopback("IPv6 loopback", "::1", "missing")
    yield _broker_answers()
    yield _tls_library()
    for name, remedy in _LIBRARIES:
        version = _version(name)
        yield ("ok", name, version) if version else ("missing", name, f"not installed: {remedy}")
    yield _java()


def _java() -> tuple[str, str, str]:
    try:
        from fakeamqp.spark.errors import SparkError
        from fakeamqp.spark.session.installation import find_java
    except ImportError as error:  # Not on Windows.
        return "missing", "Java", str(error)
    try:
        path, version = find_java()
    except SparkError as error:
        return "missing", "Java", str(error)
    return "ok", "Java", f"{version} at {path}"


def _loopback(subject: str, host: str, otherwise: str) -> tuple[str, str, str]:
    import socket

    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.bind((host, 0))
            return "ok", subject, f"can listen on {host}"
    except OSError as error:
        return otherwise, subject, f"cannot listen on {host}: {error.strerror or error}"


def _broker_answers() -> tuple[str, str, str]:
    import socket

    from fakeamqp import Broker

    try:
        with Broker() as broker, socket.create_connection((broker.host, broker.port), timeout=10) as client:
            client.sendall(b"AMQP\x00\x00\x09\x01")
            answer = client.recv(7)
    except (FakeAMQPError, OSError) as error:
        return "failed", "broker", f"does not run: {error}"
    if answer[:1] != b"\x01":  # A method frame: connection.start.
        return "failed", "broker", f"answers the protocol header with {answer!r}"
    return "ok", "broker", "starts, answers and stops"


def _tls_library() -> tuple[str, str, str]:
    try:
        import ssl
    except ImportError:
        return "missing", "TLS", "this Python was built without the ssl module"
    return "ok", "TLS", ssl.OPENSSL_VERSION


def _version(distribution: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


# --- shared -----------------------------------------------------------------------------------------


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "demo": _demo,
    "doctor": _doctor,
    "replay": _replay,
    "serve": _serve,
    "trace": _trace,
}
