"""What several commands share: errors of the command line, values and options."""

from __future__ import annotations

import argparse
import sys
from math import inf
from typing import TYPE_CHECKING, Any

from fakeamqp.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakeamqp import ServerTLS
    from fakeamqp.trace import Trace

REPEATED: dict[str, Any] = {"action": "append", "default": []}
"""Of an option that can be repeated."""

SHOWN = 10_000
"""Events, and messages of each kind, that the control interface and the inspector page can show."""


class UsageError(Exception):
    """The command line is invalid; the text says what to change."""


def number(text: str, what: str, least: int = 1, most: float = inf) -> int:
    """A whole number in these bounds; `what` it is, for the error."""
    if not text.isdecimal() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return int(text)


def rate(text: str) -> float:
    """A number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def port(text: str) -> int:
    """A port; 0 stands for any."""
    return number(text, "a port: ports are 0 to 65535", least=0, most=65535)


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """The end of an error about an unknown name."""
    near = nearest(name, known)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"


# --- servers ----------------------------------------------------------------------------------------


def add_host(parser: argparse.ArgumentParser) -> None:
    """Add the option of a server for its address."""
    parser.add_argument(
        "--host",
        default="localhost",
        help="address to listen on (default: %(default)s, which is 127.0.0.1 and ::1)",
    )


def add_tls(parser: argparse.ArgumentParser) -> None:
    """Add the options of a server for TLS."""
    parser.add_argument(
        "--tls",
        action="store_true",
        help="use TLS with a temporary certificate (needs fakeamqp[tls])",
    )
    parser.add_argument(
        "--tls-certificate",
        metavar="FILE",
        help="use TLS with this certificate (PEM, with its intermediates); needs --tls-key",
    )
    parser.add_argument("--tls-key", metavar="FILE", help="private key of --tls-certificate (PEM)")
    parser.add_argument(
        "--tls-ca",
        metavar="FILE",
        help="authority that signed --tls-certificate (PEM), for clients to trust",
    )
    parser.add_argument(
        "--tls-client-ca",
        metavar="FILE",
        help="verify client certificates with this authority (PEM); clients without one are accepted",
    )


def tls(options: argparse.Namespace) -> bool | ServerTLS:
    """The argument `tls` of `Broker` and `Proxy`.

    Raises UsageError if an option is missing that another one needs.
    """
    if options.tls_certificate is None or options.tls_key is None:
        for name in ("certificate", "key", "ca", "client_ca"):
            if getattr(options, f"tls_{name}") is not None:
                option = f"--tls-{name}".replace("_", "-")
                raise UsageError(f"{option} needs both --tls-certificate and --tls-key")
        return bool(options.tls)
    from fakeamqp import ServerTLS

    return ServerTLS.from_files(
        options.tls_certificate, options.tls_key, ca=options.tls_ca, client_ca=options.tls_client_ca
    )


def add_control(parser: argparse.ArgumentParser) -> None:
    """Add the option for the control interface."""
    parser.add_argument(
        "--control-port",
        type=port,
        metavar="PORT",
        help="serve the control interface, with which tests in other processes use faults, clock and "
        "assertions, on this port; 0 takes a free one (needs fakeamqp[management])",
    )


# --- recordings -------------------------------------------------------------------------------------


def recording(path: str) -> Trace:
    """The recording in a file. Raises UsageError if it cannot be read."""
    from fakeamqp.trace import RecordingError, load
    from fakeamqp.trace.timeline import UNFINISHED

    try:
        trace = load(path)
    except (RecordingError, OSError) as error:
        raise UsageError(str(error)) from error
    if trace.unfinished:
        print(f"{path}: {UNFINISHED}", file=sys.stderr)
    return trace
