"""The command `proxy`."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fakeamqp.cli.options import (
    REPEATED,
    SHOWN,
    UsageError,
    add_control,
    add_host,
    add_tls,
    number,
    port,
    tls,
)
from fakeamqp.cli.stopping import until_stopped
from fakeamqp.errors import FakeAMQPError

if TYPE_CHECKING:
    from fakeamqp import Proxy, Recording


def add(commands: Any) -> None:
    """Add the command."""
    proxy = commands.add_parser(
        "proxy",
        help="run a proxy in front of a broker until SIGINT or SIGTERM",
        description="Run a proxy in front of a broker until SIGINT or SIGTERM, and record what passes. Once "
        "it is ready it prints the line 'listening on amqp://127.0.0.1:PORT/%2F': clients log in there as at "
        "the broker. It is for tests and staging, not for production.",
    )
    proxy.add_argument(
        "--to",
        action="append",
        required=True,
        metavar="URL",
        help="broker, such as amqp://rabbit:5672/%%2F or amqps://rabbit/%%2F; if it is repeated, each client "
        "gets the first that can be reached",
    )
    proxy.add_argument(
        "--to-ca",
        metavar="FILE",
        help="authority that signed the certificate of the broker (PEM; default: those of the machine)",
    )
    add_host(proxy)
    proxy.add_argument(
        "--listen",
        type=port,
        default=0,
        metavar="PORT",
        help="port to listen on; 0 takes a free one (default: %(default)s)",
    )
    add_tls(proxy)
    proxy.add_argument(
        "--record",
        metavar="FILE",
        help="write all that passes to this file (JSON Lines), for the commands trace, replay and scaffold; "
        "passwords are replaced, bodies of messages are not",
    )
    proxy.add_argument(
        "--redact",
        **REPEATED,
        metavar="FIELD",
        help="replace this field of messages in the file: body, headers, headers.NAME or a property such as "
        "user_id; can be repeated",
    )
    proxy.add_argument(
        "--record-size",
        type=partial(number, what="a number of bytes"),
        metavar="OCTETS",
        help="size at which a new file begins; the full one becomes FILE.1 (default: 64 MiB)",
    )
    proxy.add_argument(
        "--record-files",
        type=partial(number, what="a number of files"),
        metavar="COUNT",
        help="number of files that are kept, the current one included (default: 8)",
    )
    add_control(proxy)
    proxy.set_defaults(run=_proxy)


def _proxy(options: argparse.Namespace) -> int:
    with until_stopped() as signals:
        recording = _recording(options)
        with _configured_proxy(options, recording) as proxy:
            if options.control_port is not None:
                print(f"control interface on {proxy.admin.control_url}", flush=True)
                print(f"inspector on {proxy.admin.inspector_url}", flush=True)
            url = urlsplit(proxy.url)
            print(f"listening on {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}", flush=True)
            if url.scheme == "amqps":
                print(f"certificate authority in {proxy.tls.ca_file}", flush=True)
            signals.wait()
    if recording is not None and recording.error is not None:
        raise FakeAMQPError(f"the recording is not complete: {recording.error}")
    return 0


def _configured_proxy(options: argparse.Namespace, recording: Recording | None) -> Proxy:
    from fakeamqp import Proxy

    context = None
    if options.to_ca is not None:
        from ssl import create_default_context

        context = create_default_context(cafile=options.to_ca)
    try:
        # No code in this process looks at messages and events, but the control interface does.
        shown = SHOWN if options.control_port is not None else 0
        return Proxy(
            options.to,
            options.host,
            options.listen,
            tls=tls(options),
            to_tls=context,
            history=shown,
            trace=shown,
            record=recording,
            control_port=options.control_port,
        )
    except FakeAMQPError as error:
        raise UsageError(str(error)) from error


def _recording(options: argparse.Namespace) -> Recording | None:
    from fakeamqp import Recording

    chosen = {"redact": options.redact, "file_size": options.record_size, "files": options.record_files}
    chosen = {name: value for name, value in chosen.items() if value}
    if options.record is None:
        if chosen:
            raise UsageError("--redact, --record-size and --record-files need --record FILE")
        return None
    try:
        return Recording(options.record, **chosen)
    except FakeAMQPError as error:
        raise UsageError(str(error)) from error
