"""How a connection logs in: address, TLS, and a password that may be in a file or in the environment.

A password file is read for each connection, so that passwords and OAuth 2.0 tokens can be renewed while a
query runs.
"""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from fakeamqp.spark.errors import BrokerUnreachable, OptionError

if TYPE_CHECKING:
    from fakeamqp.spark.options import ConnectionOptions

# Client and broker do not trust each other's certificates, or have no common version or cipher of TLS. In TLS
# 1.3 the alert about the client's certificate comes after the client's handshake. Other errors of TLS come
# from a broker or proxy that stops.
_UNTRUSTED = re.compile(
    r"\[SSL: (CERTIFICATE_VERIFY_FAILED|UNSUPPORTED_PROTOCOL|"
    r"\w+_ALERT_(\w*CERTIFICATE\w*|UNKNOWN_CA|HANDSHAKE_FAILURE|PROTOCOL_VERSION))\]"
)
_PORTS = {"amqp": 5672, "amqps": 5671}
_GUEST = "guest"

# Password files that this process has read. A program that renews one may delete it first.
_read_before: set[str] = set()


@dataclass(frozen=True)
class BrokerLogin:
    """Where a connection goes, and what it says there. `heartbeat` is in seconds, None for the broker's."""

    host: str
    port: int
    virtual_host: str
    username: str
    password: str = field(repr=False)
    mechanism: str
    heartbeat: int | None
    tls: ssl.SSLContext | None

    @property
    def response(self) -> bytes:
        """The response of the SASL mechanism."""
        return b"" if self.mechanism == "EXTERNAL" else f"\0{self.username}\0{self.password}".encode()


def login_of(url: str, options: ConnectionOptions) -> BrokerLogin:
    """The login for a broker.

    Raises:
        OptionError: the URL has settings that it cannot have, or a file or variable of the options cannot be
            read.
        BrokerUnreachable: the password file cannot be read now, and could be before.
    """
    parts = urlsplit(url)
    settings = dict(parse_qsl(parts.query, keep_blank_values=True))
    heartbeat = settings.pop("heartbeat", None)
    valid = heartbeat is None or (heartbeat.isdecimal() and int(heartbeat) < 1 << 16)
    if settings or not valid:
        # Without the values, which may be secrets.
        names = ", ".join(name for name, _ in parse_qsl(parts.query))
        raise OptionError(
            f"option 'amqp.url': {without_password(url)} cannot be used with its query ({names}). Settings "
            "of the connection are options, such as amqp.heartbeat and amqp.connectionTimeout"
        )
    chosen = password(options)
    given = _GUEST if parts.username is None else unquote(parts.password or "")
    return BrokerLogin(
        host=parts.hostname or "localhost",
        port=parts.port or _PORTS[parts.scheme],
        virtual_host=unquote(parts.path[1:]) or "/" if options.virtual_host is None else options.virtual_host,
        username=unquote(parts.username or _GUEST) if options.username is None else options.username,
        password=given if chosen is None else chosen,
        mechanism=options.mechanism,
        heartbeat=int(heartbeat) if heartbeat and options.heartbeat is None else options.heartbeat,
        tls=tls_context(options) if parts.scheme == "amqps" else None,
    )


def is_untrusted(error: BaseException) -> bool:
    """Whether TLS failed for a reason that stays: certificates, or no common version."""
    return _UNTRUSTED.search(str(error)) is not None


def without_password(url: str) -> str:
    """The URL as errors show it: without its query, too."""
    parts = urlsplit(url)
    user, at, place = parts.netloc.rpartition("@")
    return parts._replace(netloc=user.partition(":")[0] + at + place, query="", fragment="").geturl()


def password(options: ConnectionOptions) -> str | None:
    """The password of the options; None if it can only be in the URL.

    Raises:
        OptionError: its file or variable cannot be read.
        BrokerUnreachable: its file cannot be read now, and could be before.
    """
    file = options.password_file
    if file is not None:
        try:
            found = Path(file).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            unreadable = _unreadable("amqp.passwordFile", file, error)
            if file not in _read_before:
                raise unreadable from None
            raise BrokerUnreachable(
                f"{unreadable}; this process has read it before, so it may be about to be renewed"
            ) from None
        _read_before.add(file)
        return found
    if options.password_env is None:
        return options.password
    if options.password_env not in os.environ:
        raise OptionError(
            "option 'amqp.passwordEnv': this process has no variable with the name that the option gives. "
            "The option is the name of an environment variable, not the password; the driver and each "
            "executor need the variable. 'amqp.passwordFile' may be easier"
        )
    return os.environ[options.password_env]


def tls_context(options: ConnectionOptions) -> ssl.SSLContext:
    """The TLS settings of the options.

    Raises:
        OptionError: a file of the options cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
    except OSError as error:
        raise _unreadable("amqp.caFile", str(options.ca_file), error) from None
    if not options.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if options.cert_file:
        try:
            context.load_cert_chain(options.cert_file, options.key_file, _encrypted)
        except OSError as error:
            files = " with ".join(filter(None, (options.cert_file, options.key_file)))
            raise _unreadable("amqp.certFile", files, error) from None
    return context


def _encrypted() -> str:
    """Instead of the password, for which Python would ask at the terminal."""
    raise OptionError(
        "option 'amqp.keyFile': the key is encrypted; give a file with a key that is not, which only the job "
        "can read"
    )


def _unreadable(key: str, file: str, error: Exception) -> OptionError:
    # Of a decoding error only the kind: its text has bytes of the file.
    why = getattr(error, "strerror", None) or type(error).__name__
    return OptionError(f"option {key!r}: cannot read {file}: {why}")
