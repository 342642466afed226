"""The command `fakeamqp`: a broker for other processes, recordings, a short tour, a look at the machine.

Exit codes are 0 when all went well, 1 when something failed on the way or a replay went otherwise than the
recording, and 2 when the command line asks for what does not exist.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from fakeamqp.errors import FakeAMQPError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fakeamqp import Broker, ServerTLS
    from fakeamqp.trace import Trace

__all__ = ["main"]

_SIGPIPE = 128 + 13
"""The exit code of shells for a program that nobody reads from any more."""

DEFAULT_PORT = 5672
"""Where AMQP clients look for a broker when nobody tells them a port."""

LARGEST_MESSAGE = 128 * 1024 * 1024
"""What RabbitMQ took before 4.0 lowered it to 16 MiB: a served broker is for clients of every age."""

CLOCKS = ("real", "virtual", "wall")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: what follows the name of the command; taken from `sys.argv` when left out.

    Raises:
        SystemExit: code 2 if the command line cannot be read, code 0 after `--help` and `--version`.
    """
    options = _parser().parse_args(arguments)
    try:
        code = _COMMANDS[options.command](options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever was to read this, `head` say, has read enough. What is still buffered goes nowhere: Python
        # would complain about it on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _SIGPIPE
    except _UsageError as error:
        print(f"fakeamqp {options.command}: {error}", file=sys.stderr)
        return 2
    except (FakeAMQPError, OSError) as error:
        print(f"fakeamqp {options.command}: {error}", file=sys.stderr)
        return 1


class _UsageError(Exception):
    """The command line asks for what does not exist; the text says what does."""


class _Version(argparse.Action):
    """Prints the version; looking it up costs more than parsing, so it is done on demand."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"fakeamqp {_version('fakeamqp')}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fakeamqp", description="A real AMQP broker for tests.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = commands.add_parser(
        "serve",
        help="run a broker until SIGINT or SIGTERM",
        description="Run a broker until SIGINT or SIGTERM. Once it is ready it prints the line "
        "'listening on amqp://guest:guest@127.0.0.1:PORT/'. Whatever it holds is gone when it ends.",
    )
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serve.add_argument(
        "--port", type=_port, default=DEFAULT_PORT, help="0 takes a free one (default: %(default)s)"
    )
    serve.add_argument(
        "--personality",
        default="rabbitmq-4.2",
        metavar="NAME",
        help="whose behaviour to show: rabbitmq-3.13, rabbitmq-4.0, rabbitmq-4.2, rabbitmq-4.3 or spec "
        "(default: %(default)s)",
    )
    serve.add_argument(
        "--permit",
        action="append",
        default=[],
        metavar="FEATURE",
        help="have this deprecated feature although the personality denies it, such as global_qos in "
        "rabbitmq-4.3; may be given more than once",
    )
    serve.add_argument(
        "--deny",
        action="append",
        default=[],
        metavar="FEATURE",
        help="do without this deprecated feature although the personality permits it, such as "
        "transient_nonexcl_queues in rabbitmq-4.2; may be given more than once",
    )
    serve.add_argument(
        "--clock",
        default="real",
        metavar="MODE",
        help="whose time the broker lives by: real, wall, or virtual, which needs --clock-rate "
        "(default: %(default)s)",
    )
    serve.add_argument(
        "--clock-rate",
        type=_rate,
        metavar="FACTOR",
        help="how many seconds pass on a virtual clock in a real one, such as 60",
    )
    serve.add_argument(
        "--tls",
        action="store_true",
        help="speak TLS with a certificate made on the spot (needs fakeamqp[tls])",
    )
    serve.add_argument(
        "--tls-certificate",
        metavar="FILE",
        help="speak TLS with this certificate (PEM, with its intermediates) instead; needs --tls-key",
    )
    serve.add_argument("--tls-key", metavar="FILE", help="the private key of --tls-certificate (PEM)")
    serve.add_argument(
        "--tls-ca",
        metavar="FILE",
        help="the authority that signed --tls-certificate (PEM), for clients to trust",
    )
    serve.add_argument(
        "--tls-client-ca",
        metavar="FILE",
        help="check the clients' certificates with this authority (PEM); clients without one are let in",
    )
    serve.add_argument(
        "--definitions", metavar="FILE", help="load this RabbitMQ definitions file (JSON) before listening"
    )
    serve.add_argument(
        "--max-message-size",
        type=_size,
        metavar="OCTETS",
        default=LARGEST_MESSAGE,
        help="the largest message taken; RabbitMQ's max_message_size (default: %(default)s)",
    )
    serve.add_argument(
        "--management-port", type=_port, metavar="PORT", help="where to offer the HTTP API (not built yet)"
    )

    trace = commands.add_parser(
        "trace",
        help="show a recording, or turn it into something else",
        description="Show a recording, which trace.jsonl(FILE) has written, as a timeline; or write it as "
        "what the options name, and show nothing.",
    )
    trace.add_argument("file", metavar="FILE", help="the recording (JSON Lines)")
    trace.add_argument(
        "--connection", metavar="NAME", help="only this one, by its name or by its short name, such as c1"
    )
    trace.add_argument("--limit", type=_count, metavar="COUNT", help="only so many of the latest events")
    trace.add_argument("--html", metavar="OUT", help="write a page for a browser")
    trace.add_argument("--pcapng", metavar="OUT", help="write packets for Wireshark")
    trace.add_argument("--parquet", metavar="OUT", help="write a table (needs fakeamqp[trace])")

    replay = commands.add_parser(
        "replay",
        help="do again what the clients of a recording did, and compare the answers",
        description="Feed the client side of a recording to a broker, in the recorded order, and compare "
        "what it answers with what was answered then. Prints what differs, by connection. The exit code is 0 "
        "when nothing does, 1 when something does.",
    )
    replay.add_argument("file", metavar="FILE", help="the recording (JSON Lines)")
    replay.add_argument(
        "--url",
        metavar="URL",
        help="the broker to try, such as amqp://guest:guest@localhost/; every connection logs in with what "
        "the URL names (default: a fresh one in this process)",
    )
    replay.add_argument(
        "--personality",
        metavar="NAME",
        help="whose behaviour the fresh broker is to show, such as spec (default: rabbitmq-4.2)",
    )
    replay.add_argument(
        "--definitions",
        metavar="FILE",
        help="what the fresh broker has before anybody connects: a RabbitMQ definitions file (JSON)",
    )
    replay.add_argument(
        "--timeout",
        type=_rate,
        default=5.0,
        metavar="SECONDS",
        help="how long an answer may take (default: %(default)s)",
    )

    commands.add_parser("demo", help="show in a few seconds what the broker does (needs fakeamqp[pika])")
    commands.add_parser("doctor", help="check whether brokers and clients can run on this machine")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: ports are 0 to 65535")
    return int(text)


def _size(text: str) -> int:
    return _positive(text, "a number of bytes")


def _count(text: str) -> int:
    return _positive(text, "a number of events")


def _positive(text: str, what: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return rate


# --- serve ------------------------------------------------------------------------------------------


def _serve(options: argparse.Namespace) -> int:
    import logging

    _refuse_what_cannot_be(options)
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    with _StopSignals() as signals:
        broker = _configured_broker(options)
        if options.clock_rate is not None:
            broker.clock.rate = options.clock_rate
        with broker:
            print(f"listening on {broker.url}", flush=True)
            if broker.url.startswith("amqps:"):
                print(f"certificate authority in {broker.tls.ca_file}", flush=True)
            signals.wait()
    return 0


def _refuse_what_cannot_be(options: argparse.Namespace) -> None:
    if options.clock not in CLOCKS:
        raise _UsageError(f"unknown clock {options.clock!r}{_did_you_mean(options.clock, CLOCKS)}")
    if options.clock == "virtual" and options.clock_rate is None:
        raise _UsageError(
            "--clock virtual: no other process can move this clock, so give it a --clock-rate, such as 60"
        )
    if options.clock != "virtual" and options.clock_rate is not None:
        raise _UsageError(f"--clock-rate sets a virtual clock, and this one is {options.clock}")
    if options.management_port is not None:
        raise _UsageError("--management-port: the HTTP API is not built yet; leave the option out")


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
            # Nobody in this process looks, so nothing is kept for looking at.
            history=0,
            trace=0,
            largest_message=options.max_message_size,
        )
    except FakeAMQPError as error:  # Nothing has been tried yet: it is the arguments that are wrong.
        raise _UsageError(str(error)) from error


def _tls(options: argparse.Namespace) -> bool | ServerTLS:
    """What `Broker` is to have as `tls`.

    Raises:
        _UsageError: some of the files are named without those they belong to.
        FakeAMQPError: they cannot be used.
    """
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
    """Wait for SIGINT or SIGTERM, without losing one that comes early.

    The signals write to a socket instead of raising, so that none interrupts the broker in the middle of
    starting or stopping. Once one has come the process ends, and another must not end it in another way.
    """

    def __enter__(self) -> _StopSignals:
        import signal
        import socket

        self._came = False
        self._signal = signal
        self._receiver, self._sender = socket.socketpair()
        self._sender.setblocking(False)
        self._former = {
            number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)
        }
        self._former_descriptor = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        return self

    def wait(self) -> None:
        self._receiver.recv(1)
        self._came = True

    def __exit__(self, *_: object) -> None:
        self._signal.set_wakeup_fd(self._former_descriptor)
        for number, handler in self._former.items():
            # An ignored signal stays ignored while the interpreter shuts down; a handler is forgotten then.
            self._signal.signal(number, self._signal.SIG_IGN if self._came else handler)
        self._receiver.close()
        self._sender.close()


# --- trace and replay -------------------------------------------------------------------------------


def _trace(options: argparse.Namespace) -> int:
    trace = _recording(options.file)
    if options.connection is not None:
        names = dict.fromkeys(name for event in trace.events for name in (event.alias, event.connection))
        if options.connection not in names:
            known = [name for name in names if name]
            hint = _did_you_mean(options.connection, known) if known else "; it has none"
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
    """As much of a trace as the options ask for."""
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
            raise _UsageError(f"--{option} is about a fresh broker, and --url names one that is there")
    trace = _recording(options.file)
    try:
        outcome = replay(
            trace,
            url=options.url,
            personality=options.personality or "rabbitmq-4.2",
            definitions=options.definitions,
            timeout=options.timeout,
        )
    except NoBroker:
        raise
    except FakeAMQPError as error:  # Nothing has been sent yet: it is the arguments that are wrong.
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
            "fakeamqp demo: the tour uses pika; install it with: pip install 'fakeamqp[pika]'",
            file=sys.stderr,
        )
        return 1
    from fakeamqp import Broker

    with Broker() as broker:
        print(f"A broker runs in this process, at {broker.url}")
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        print("pika has connected to it over a socket, as it would to RabbitMQ.\n")

        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("greetings", durable=True)
        for body in (b"good morning", b"good day", b"good night"):
            channel.basic_publish("", "greetings", body, pika.BasicProperties(delivery_mode=2))
        print("pika published three messages, and the broker confirmed each of them.")
        print(f"Seen from the test: {broker.queue('greetings')!r}\n")

        method, _properties, body = channel.basic_get("greetings")
        channel.basic_nack(method.delivery_tag, requeue=True)
        method, _properties, again = channel.basic_get("greetings")
        print(
            f"A consumer took {body!r} and gave it back; it came again with redelivered={method.redelivered}."
        )
        channel.basic_ack(method.delivery_tag)
        assert again == body

        try:
            channel.queue_declare("no-such-queue", passive=True)
        except pika.exceptions.ChannelClosedByBroker as error:
            print(f"A mistake gets RabbitMQ's answer: {error.reply_code} {error.reply_text}\n")
        connection.close()

        broker.restart()
        print("The broker was restarted on the same port. What is durable has survived:")
        print(f"Seen from the test: {broker.queue('greetings')!r}\n")

        lines = broker.trace.timeline().splitlines()
        print("What happened, as a failing test would report it (the end of it):")
        print("\n".join(f"    {line}" for line in lines[-12:]))
    print("\nThe broker has stopped. Nothing of it is left on this machine.")
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
    print("Ready: brokers can run here. What is missing is optional.")
    return 0


def _findings() -> Iterator[tuple[str, str, str]]:
    """Verdict ("ok", "missing" or "failed"), subject, and what was found, in words."""
    running = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info >= (3, 10):  # noqa: UP036 - a checkout can be run without pip's own check
        yield "ok", "Python", f"{running} at {sys.executable}"
    else:
        yield "failed", "Python", f"{running} is too old; 3.10 or later is needed"
    yield "ok", "fakeamqp", _version("fakeamqp") or "used from a folder, not installed"
    yield _loopback("IPv4 loopback", "127.0.0.1", "failed")
    yield _loopback("IPv6 loopback", "::1", "missing")
    yield _broker_answers()
    yield _tls_library()
    for name, remedy in _LIBRARIES:
        version = _version(name)
        yield ("ok", name, version) if version else ("missing", name, f"not installed: {remedy}")
    yield _java()


def _java() -> tuple[str, str, str]:
    from fakeamqp.spark.errors import SparkError
    from fakeamqp.spark.session.installation import find_java

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
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "demo": _demo,
    "doctor": _doctor,
    "replay": _replay,
    "serve": _serve,
    "trace": _trace,
}
