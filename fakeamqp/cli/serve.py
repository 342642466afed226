"""The command `serve`."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from fakeamqp.cli.options import (
    REPEATED,
    SHOWN,
    UsageError,
    add_control,
    add_host,
    add_tls,
    did_you_mean,
    number,
    port,
    rate,
    tls,
)
from fakeamqp.cli.stopping import until_stopped
from fakeamqp.errors import BrokerError, FakeAMQPError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakeamqp import Bounds, Broker
    from fakeamqp.settings import PersonalityChoices

DEFAULT_PORT = 5672
"""The port registered for AMQP."""

LARGEST_MESSAGE = 128 * 1024 * 1024
"""RabbitMQ's limit in bytes before 4.0 lowered it to 16 MiB: clients of `serve` may be written for either."""

CLOCKS = ("real", "virtual", "wall")


def add(commands: Any) -> None:
    """Add the command."""
    serve = commands.add_parser(
        "serve",
        help="run a broker until SIGINT or SIGTERM",
        description="Run a broker until SIGINT or SIGTERM. Once it is ready it prints the line "
        "'listening on amqp://guest:guest@127.0.0.1:PORT/%2F'. Its queues and messages are lost when "
        "it ends.",
    )
    add_host(serve)
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
        **REPEATED,
        metavar="FEATURE",
        help="permit this deprecated feature although the personality denies it, such as global_qos in "
        "rabbitmq-4.3; can be repeated",
    )
    serve.add_argument(
        "--deny",
        **REPEATED,
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
        type=rate,
        metavar="FACTOR",
        help="seconds that pass on a virtual clock per real second, such as 60",
    )
    add_tls(serve)
    serve.add_argument(
        "--definitions", metavar="FILE", help="RabbitMQ definitions file (JSON) to load before listening"
    )
    serve.add_argument(
        "--max-message-size",
        type=partial(number, what="a number of bytes"),
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
        **REPEATED,
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
        type=partial(number, what="a number of logins", least=0),
        metavar="COUNT",
        help="failed logins in a row with which an address is blocked; 0 blocks none (default: that of the "
        "personality, which is 0 for RabbitMQ and 100 for spec)",
    )
    serve.add_argument(
        "--login-block-time",
        type=rate,
        metavar="SECONDS",
        help="time for which such an address is blocked (default: 60)",
    )
    serve.add_argument(
        "--not-implemented",
        **REPEATED,
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
        **REPEATED,
        metavar="NAME",
        help="a name by which HTTP may be asked, besides IP addresses and the names of this machine; "
        "can be repeated",
    )
    add_control(serve)
    serve.set_defaults(run=_serve)


def _memory_limit(text: str) -> int | Literal["auto"] | None:
    if text == "auto":
        return "auto"
    return None if text == "none" else number(text, "a number of bytes, nor none")


def _bound(text: str) -> tuple[str, int]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not a bound, such as consumers_per_channel=100")
    return name, number(value, "a number above 0")


def _serve(options: argparse.Namespace) -> int:
    import logging

    _check_serve_options(options)
    with until_stopped() as signals:
        broker = _configured_broker(options)
        if options.clock_rate is not None:
            broker.clock.rate = options.clock_rate
        with broker:
            _tune_garbage_collection()
            url, remark = _url(broker)
            if options.management_port is not None:
                print(f"management API on {_management_url(broker, url)}", flush=True)
            if options.control_port is not None:
                print(f"control interface on {broker.admin.control_url}", flush=True)
            if _is_inspected(options):
                print(f"inspector on {broker.admin.inspector_url}", flush=True)
            print(f"listening on {url}", flush=True)
            if remark:
                logging.getLogger("fakeamqp").warning(remark)
            if url.startswith("amqps:"):
                print(f"certificate authority in {broker.tls.ca_file}", flush=True)
            signals.wait()
    return 0


def _management_url(broker: Broker, url: str) -> str:
    """The URL of the HTTP API, with the account and the host of the broker's URL."""
    from urllib.parse import urlsplit

    account_and_host = urlsplit(url).netloc.rpartition(":")[0]
    return f"http://{account_and_host}:{broker.admin.management_port}/api/"


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
        raise UsageError(f"unknown clock {options.clock!r}{did_you_mean(options.clock, CLOCKS)}")
    if options.clock == "virtual" and options.clock_rate is None and not _is_inspected(options):
        raise UsageError(
            "--clock virtual: other processes cannot move this clock; add a --clock-rate, such as 60, "
            "or a --control-port, by which they can"
        )
    if options.clock != "virtual" and options.clock_rate is not None:
        raise UsageError(f"--clock-rate needs --clock virtual, but the clock is {options.clock}")


def _is_inspected(options: argparse.Namespace) -> bool:
    """Whether the control interface and the inspector page are served."""
    return options.management_port is not None or options.control_port is not None


def _configured_broker(options: argparse.Namespace) -> Broker:
    from fakeamqp import Broker, Personality

    try:
        return Broker(
            host=options.host,
            port=options.port,
            personality=Personality(options.personality).with_(**_choices(options)),
            permit=options.permit,
            deny=options.deny,
            clock=options.clock,
            tls=tls(options),
            definitions=options.definitions,
            # No code in this process inspects the broker, but the control interface and the page do.
            history=SHOWN if _is_inspected(options) else 0,
            trace=SHOWN if _is_inspected(options) else 0,
            memory_limit=options.memory_limit,
            bounds=_bounds(options.bound),
            management_port=options.management_port,
            management_hosts=options.management_host,
            control_port=options.control_port,
        )
    except FakeAMQPError as error:  # The broker has not started yet, so an argument is wrong.
        raise UsageError(str(error)) from error


def _bounds(asked: Sequence[tuple[str, int]]) -> Bounds:
    """The bounds with those that the command line names."""
    from dataclasses import fields

    from fakeamqp import Bounds

    known = tuple(each.name for each in fields(Bounds))
    for name, _ in asked:
        if name not in known:
            raise UsageError(f"--bound: there is no bound {name!r}{did_you_mean(name, known)}")
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
