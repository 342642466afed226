"""How a connection logs in: address, TLS, and a password that may be in a file or in the environment.

A password file is read for each connection, so that passwords and OAuth 2.0 tokens can be renewed while a
query runs.
"""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import pika

from fakeamqp.spark.errors import BrokerUnreachable, OptionError

if TYPE_CHECKING:
    from fakeamqp.spark.options import ConnectionOptions

# Reply codes, as pika has them in its texts: wrong password; no such virtual host, or no access to it.
_PASSWORD, _VIRTUAL_HOST = "(403)", "(530)"
# Client and broker do not trust each other's certificates, or have no common version or cipher of TLS. In TLS
# 1.3 the alert about the client's certificate comes after the client's handshake, so that pika takes it for a
# lost connection, and has it in its text only. Other errors of TLS come from a broker or proxy that stops.
_UNTRUSTED = re.compile(
    r"\[SSL: (CERTIFICATE_VERIFY_FAILED|UNSUPPORTED_PROTOCOL|"
    r"\w+_ALERT_(\w*CERTIFICATE\w*|UNKNOWN_CA|HANDSHAKE_FAILURE|PROTOCOL_VERSION))\]"
)

# Password files that this process has read. A program that renews one may delete it first.
_read_before: set[str] = set()


def parameters(url: str, options: ConnectionOptions) -> pika.URLParameters:
    """The parameters of a connection.

    Raises:
        OptionError: pika cannot use the URL, or a file or variable of the options cannot be read.
        BrokerUnreachable: the password file cannot be read now, and could be before.
    """
    parts = urlsplit(url)
    if parts.username is not None and parts.password is None:
        # pika has no URL with a user and without a password.
        url = parts._replace(netloc=":@".join(parts.netloc.rsplit("@", 1))).geturl()
    try:
        found = pika.URLParameters(url)
    except (AttributeError, TypeError, ValueError) as error:
        # Values of the query, which are in pika's text, may be secrets.
        names = ", ".join(name for name, _ in parse_qsl(parts.query))
        why = f" with its query ({names})" if names else f": {type(error).__name__}"
        raise OptionError(
            f"option 'amqp.url': {without_password(url)} cannot be used{why}. Settings of the connection are "
            "options, such as amqp.heartbeat and amqp.connectionTimeout"
        ) from None
    found.connection_attempts = 1
    found.socket_timeout = options.connect_timeout
    found.stack_timeout = options.connect_timeout
    found.client_properties = {"connection_name": options.client_name, "product": "fakeamqp.spark"}
    if options.heartbeat is not None:
        found.heartbeat = options.heartbeat
    if options.virtual_host is not None:
        found.virtual_host = options.virtual_host
    if options.mechanism == "EXTERNAL":
        found.credentials = pika.credentials.ExternalCredentials()
    else:
        given, chosen = found.credentials, password(options)
        found.credentials = pika.PlainCredentials(
            given.username if options.username is None else options.username,
            given.password if chosen is None else chosen,
        )
    if parts.scheme == "amqps":
        found.ssl_options = pika.SSLOptions(tls_context(options), found.host)
    return found


def is_refusal(error: BaseException | str, password_may_change: bool = False) -> bool:
    """Whether a login failed for a reason that stays: the login itself, or certificates.

    Args:
        error: of pika.
        password_may_change: whether a wrong password may be renewed.
    """
    if isinstance(error, pika.exceptions.AuthenticationError) or _UNTRUSTED.search(str(error)):
        return True
    if isinstance(
        error, (pika.exceptions.ProbableAuthenticationError, pika.exceptions.ProbableAccessDeniedError)
    ):
        # A broker that goes away at that moment looks the same but for the code. Limits of connections pass.
        if _PASSWORD in str(error):
            return not password_may_change
        return _VIRTUAL_HOST in str(error) and "limit" not in str(error)
    wrapped = [*getattr(error, "exceptions", ()), getattr(error, "exception", None)]
    return any(is_refusal(each, password_may_change) for each in wrapped if isinstance(each, BaseException))


def without_password(url: str) -> str:
    """The URL as errors show it: without its query, too."""
    url = urlsplit(url)._replace(query="", fragment="").geturl()
    head, at, tail = url.rpartition("@")
    scheme, _, login = head.partition("://")
    return f"{scheme}://{login.partition(':')[0]}@{tail}" if at else url


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
    if options.password_env is not None:
        name = options.password_env
        if name not in os.environ:
            raise OptionError(
                "option 'amqp.passwordEnv': this process has no variable with the name that the option "
                "gives. The option is the name of an environment variable, not the password; the driver and "
                "each executor need the variable. 'amqp.passwordFile' may be easier"
            )
        return os.environ[name]
    return options.password


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
    # Of a decoding error only the kind: its text has octets of the file.
    why = getattr(error, "strerror", None) or type(error).__name__
    return OptionError(f"option {key!r}: cannot read {file}: {why}")
