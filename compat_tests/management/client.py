"""A small client of the HTTP API, which shows answers as they are."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True)
class Reply:
    """One answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Api:
    """Sends requests to the API at a URL with credentials, such as `broker.admin.management_url`."""

    def __init__(self, url: str, timeout: float = 30.0) -> None:
        parts = urlsplit(url)
        self._host, self._port, self._timeout = parts.hostname, parts.port, timeout
        self._credentials = None
        if parts.username is not None:
            self._credentials = unquote(parts.username), unquote(parts.password or "")

    def log_in(self, name: str, password: str) -> Api:
        """The API for another user."""
        return self._with((name, password))

    def log_out(self) -> Api:
        """The API without credentials."""
        return self._with(None)

    def _with(self, credentials: tuple[str, str] | None) -> Api:
        other = copy(self)
        other._credentials = credentials
        return other

    def request(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """Send a request; `path` is below `/api/`, and `body` JSON, or bytes as they are."""
        sent = dict(headers or {})
        if self._credentials is not None:
            sent["authorization"] = "Basic " + b64encode(":".join(self._credentials).encode()).decode()
        octets = body if isinstance(body, bytes | Iterator) or body is None else json.dumps(body).encode()
        if octets is not None:
            sent.setdefault("content-type", "application/json")
        with closing(HTTPConnection(self._host, self._port, timeout=self._timeout)) as connection:
            connection.request(method, f"/api/{path}", octets, sent)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, found, response.read())

    def get(self, path: str) -> Any:
        """The JSON of a GET that must succeed."""
        reply = self.request("GET", path)
        assert reply.status == 200, (path, reply)
        return reply.json

    def put(self, path: str, body: object = None) -> Reply:
        return self.request("PUT", path, {} if body is None else body)

    def post(self, path: str, body: object = None) -> Reply:
        return self.request("POST", path, {} if body is None else body)

    def delete(self, path: str) -> Reply:
        return self.request("DELETE", path)
