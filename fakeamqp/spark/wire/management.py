"""Asks RabbitMQ's HTTP API for what AMQP cannot tell: bindings, policies and names of queues."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from fakeamqp.spark.errors import BrokerUnreachable, LoginRefused, OptionError, QueueNotFound
from fakeamqp.spark.wire.login import login_of, tls_context

if TYPE_CHECKING:
    from fakeamqp.spark.options import ConnectionOptions

T = TypeVar("T")

_LAST = 2**63
_QUEUE = "queue"


class QueueDetails(NamedTuple):
    """What a queue was declared with, and what its policies define; None if the broker does not tell yet.

    In RabbitMQ 4.0 policies are part of the statistics. These are several seconds old, and those of a quorum
    queue are missing at first (measured).
    """

    type: str
    arguments: dict[str, Any]
    policy: dict[str, Any] | None


def bound_queues(url: str, options: ConnectionOptions, exchange: str) -> list[str]:
    """The queues that an exchange has bindings to, in the order of the partitions of a super stream.

    The list is empty if there is no such exchange: RabbitMQ does not tell the difference (measured: 3.10 to
    4.3).

    Args:
        url: of the HTTP API. If it has no user, the login is that of the AMQP connection.
        options: of the AMQP connection; the virtual host is that of its first URL.
        exchange: its name.

    Raises:
        LoginRefused: the API refuses the user.
        BrokerUnreachable: the API does not answer, or its answer cannot be read.
        OptionError: there is no login, or a file of the options cannot be read.
    """

    def queues(found: Any) -> list[str]:
        bindings = [each for each in found if each["destination_type"] == "queue"]
        bindings.sort(key=lambda each: each["arguments"].get("x-stream-partition-order", _LAST))
        return list(dict.fromkeys(str(each["destination"]) for each in bindings))

    return _ask(url, options, "exchanges/{}/{}/bindings/source", exchange, "list of bindings", queues)


def queue_details(url: str, options: ConnectionOptions, name: str) -> QueueDetails:
    """The type, the arguments and the policies of a queue.

    Raises:
        QueueNotFound: there is no such queue.
        LoginRefused, BrokerUnreachable, OptionError: as `bound_queues`.
    """

    def details(found: Any) -> QueueDetails:
        return QueueDetails(found["type"], found["arguments"], found.get("effective_policy_definition"))

    # Without the statistics RabbitMQ 4.3 tells the policies of this moment, and 4.0 tells none.
    path = "queues/{}/{}?columns=type,arguments,effective_policy_definition"
    now = _ask(url, options, path + "&disable_stats=true", name, _QUEUE, details)
    return now if now.policy is not None else _ask(url, options, path, name, _QUEUE, details)


def streams_matching(url: str, options: ConnectionOptions, pattern: str) -> list[str]:
    """The streams of the virtual host whose names match a regular expression from beginning to end, sorted.

    Raises:
        LoginRefused, BrokerUnreachable, OptionError: as `bound_queues`.
    """

    def streams(found: Any) -> list[str]:
        names = (str(each["name"]) for each in found if each["type"] == "stream")
        return sorted(name for name in names if re.fullmatch(pattern, name))

    path = "queues/{}?columns=name,type&disable_stats=true"
    return _ask(url, options, path, "", "list of queues", streams)


def _ask(
    url: str, options: ConnectionOptions, path: str, name: str, what: str, read: Callable[[Any], T]
) -> T:
    """Ask about what has a name in the virtual host, and read the answer."""
    parts = urlsplit(url)
    given = login_of(options.urls[0], options)
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
    elif options.mechanism == "EXTERNAL":
        raise OptionError(
            "option 'managementUrl' needs a user, as http://user:password@host:15672: with "
            "amqp.mechanism=EXTERNAL the connection has none"
        )
    else:
        user, password = given.username, given.password
    place = parts._replace(netloc=parts.netloc.rpartition("@")[2], path=parts.path.rstrip("/")).geturl()
    path = path.format(*(quote(each, safe="") for each in (given.virtual_host, name)))
    authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    request = Request(f"{place}/api/{path}", headers={"Authorization": authorization})
    # The API is reached directly, as the broker is over AMQP.
    handlers: list[Any] = [ProxyHandler({}), _NoRedirects()]
    if parts.scheme == "https":
        handlers.append(HTTPSHandler(context=tls_context(options)))
    try:
        with build_opener(*handlers).open(request, timeout=options.connect_timeout) as answer:
            found = json.loads(answer.read())
    except HTTPError as error:
        with error:
            if error.code in (401, 403):
                raise LoginRefused(
                    f"{place} refuses user {user!r} ({error.code}): the HTTP API needs a user with the "
                    "tag 'management' and access to the virtual host"
                ) from None
            if error.code == 404 and what is _QUEUE:
                raise QueueNotFound(
                    f"{place} knows no queue {name!r} in virtual host {given.virtual_host!r} (404)"
                ) from None
            raise BrokerUnreachable(f"{place} answered with {error.code} {error.reason}") from None
    except (OSError, HTTPException) as error:
        raise BrokerUnreachable(f"cannot ask {place}: {getattr(error, 'reason', error)}") from None
    except ValueError:
        raise BrokerUnreachable(f"{place} answered with no JSON; is it RabbitMQ's HTTP API?") from None
    try:
        return read(found)
    except (TypeError, KeyError, AttributeError):
        raise BrokerUnreachable(f"{place} answered with no {what}; is it RabbitMQ's HTTP API?") from None


class _NoRedirects(HTTPRedirectHandler):
    """Makes a redirect an error: following it would tell the login to another server."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """No request to another place."""
