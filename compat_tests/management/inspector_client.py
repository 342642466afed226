"""A small client of the inspector, which does what its page does, and the inspector of a broker."""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from compat_tests.management.control_client import Refusal
from fakeamqp import Broker

if TYPE_CHECKING:
    from fakeamqp.management.inspector import Inspector


def inspector_of(broker: Broker) -> Inspector:
    """The inspector of a broker with `management=True`."""
    companion: Any = broker._management
    inspector: Inspector = companion.inspector
    return inspector


class Page:
    """Asks with the token of the printed address."""

    def __init__(self, address: str, timeout: float = 30.0) -> None:
        parts = urlsplit(address)
        assert parts.hostname is not None and parts.port is not None
        self.host, self.port, self.path, self._timeout = parts.hostname, parts.port, parts.path, timeout
        self.token = parts.fragment.removeprefix("token=")

    @classmethod
    def of(cls, broker: Broker) -> Page:
        return cls(broker.admin.inspector_url)

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}", "content-type": "application/json"}

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request with these headers only; `path` is below `/inspector/`."""
        with closing(HTTPConnection(self.host, self.port, timeout=self._timeout)) as connection:
            connection.request(method, self.path + path, body, headers or {})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, response.read()

    def ask(self, question: str, /, **asked: Any) -> Any:
        status, _, body = self.send("POST", f"ask/{question}", json.dumps(asked).encode(), self.headers)
        answer = json.loads(body)
        if status != 200:
            raise Refusal(status, answer["error"], answer["reason"])
        return answer

    def events(self, query: str = "") -> Events:
        return Events(self, query)


class Events:
    """The event stream of one page."""

    def __init__(self, page: Page, query: str = "") -> None:
        self._connection = HTTPConnection(page.host, page.port, timeout=30)
        self._connection.request("GET", f"{page.path}events{query}", headers=page.headers)
        self.response: HTTPResponse = self._connection.getresponse()

    def next(self) -> tuple[str, Any]:
        """The next event: its kind and its data."""
        kind = ""
        while line := self.response.readline().decode().rstrip("\n"):
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
        return (kind, data) if kind else self.next()

    def until(self, section: str, key: str | None = None) -> Any:
        """The change of a section, and of one of its rows, in the first event that has it."""
        while True:
            _, data = self.next()
            if section in data and (key is None or key in data[section]["set"]):
                return data[section] if key is None else data[section]["set"][key]

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.response.close()
        self._connection.close()
