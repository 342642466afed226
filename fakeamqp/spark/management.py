"""Asks RabbitMQ's HTTP API for what AMQP cannot tell: the queues that an exchange has bindings to."""

from __future__ import annotations

import base64
import json
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from fakeamqp.spark.errors import BrokerUnreachable, LoginRefused, OptionError
from fakeamqp.spark.login import parameters, tls_context

if TYPE_CHECKING:
    from fakeamqp.spark.options import ConnectionOptions

_LAST = 2**63


def bound_queues(url: str, options: ConnectionOptions, exchange: str) -> list[str]:
    """The queues that an exchange has bindings to, in the order of the partitions of a super stream.

    The list is empty if there is no such exchange: RabbitMQ does not tell the difference (measured: 4.3).

    Args:
        url: of the HTTP API. If it has no user, the login is that of the AMQP connection.
        options: of the AMQP connection.
        exchange: its name.

    Raises:
        LoginRefused: the API refuses the user.
        BrokerUnreachable: the API does not answer, or its answer cannot be read.
        OptionError: there is no login, or a file of the options cannot be read.
    """
    parts = urlsplit(url)
    given = parameters(options.urls[0], options)
    if parts.username is not None:
        login = unquote(parts.username), unquote(parts.password or "")
    elif options.mechanism == "EXTERNAL":
        raise OptionError(
            "option 'managementUrl' needs a user, as http://user:password@host:15672: with "
            "amqp.mechanism=EXTERNAL the connection has none"
        )
    else:
        login = given.credentials.username, given.credentials.password
    place = parts._replace(netloc=parts.netloc.rpartition("@")[2], path=parts.path.rstrip("/")).geturl()
    names = "/".join(quote(name, safe="") for name in (given.virtual_host, exchange))
    found = _get(place, f"exchanges/{names}/bindings/source", login, options)
    try:
        bindings = [each for each in found if each["destination_type"] == "queue"]
        bindings.sort(key=lambda each: each["arguments"].get("x-stream-partition-order", _LAST))
        return list(dict.fromkeys(str(each["destination"]) for each in bindings))
    except (TypeError, KeyError, AttributeError):
        raise BrokerUnreachable(
            f"{place} answered with no list of bindings; is it RabbitMQ's HTTP API?"
        ) from None


def _get(place: str, path: str, login: tuple[str, str], options: ConnectionOptions) -> Any:
    authorization = "Basic " + base64.b64encode(":".join(login).encode()).decode()
    request = Request(f"{place}/api/{path}", headers={"Authorization": authorization})
    # The API is reached directly, as the broker is over AMQP.
    handlers: list[Any] = [ProxyHandler({}), _NoRedirects()]
    if place.startswith("https:"):
        handlers.append(HTTPSHandler(context=tls_context(options)))
    try:
        with build_opener(*handlers).open(request, timeout=options.connect_timeout) as answer:
            return json.loads(answer.read())
    except HTTPError as error:
        with error:
            if error.code in (401, 403):
                raise LoginRefused(
                    f"{place} refuses user {login[0]!r} ({error.code}): the HTTP API needs a user with the "
                    "tag 'management' and access to the virtual host"
                ) from None
            raise BrokerUnreachable(f"{place} answered with {error.code} {error.reason}") from None
    except (OSError, HTTPException) as error:
        raise BrokerUnreachable(f"cannot ask {place}: {getattr(error, 'reason', error)}") from None
    except ValueError:
        raise BrokerUnreachable(f"{place} answered with no JSON; is it RabbitMQ's HTTP API?") from None


class _NoRedirects(HTTPRedirectHandler):
    """Makes a redirect an error: following it would tell the login to another server."""

    def redirect_request(self, *_: object) -> None:
        """No request to another place."""
