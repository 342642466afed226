"""A small client of the control interface, which checks every answer against the OpenAPI document."""

from __future__ import annotations

import json
import re
from contextlib import closing
from functools import cache
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from fakeamqp.management.control.document import document
from fakeamqp.management.control.routes import ROUTES


class Refusal(Exception):
    """An answer that is an error, with its status, the name of the error and the reason."""

    def __init__(self, status: int, error: str, reason: str) -> None:
        super().__init__(f"{status} {error}: {reason}")
        self.status = status
        self.error = error
        self.reason = reason


class ControlClient:
    """Uses the control interface at an address with a token, such as `broker.admin.control_url`."""

    def __init__(self, address: str, timeout: float = 30.0) -> None:
        parts = urlsplit(address)
        assert parts.hostname is not None and parts.port is not None
        self.host, self.port, self.path, self._timeout = parts.hostname, parts.port, parts.path, timeout
        self.token = parts.fragment.removeprefix("token=")

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}", "content-type": "application/json"}

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request with these headers only; `path` is below the version."""
        with closing(HTTPConnection(self.host, self.port, timeout=self._timeout)) as connection:
            connection.request(method, self.path + path, body, headers or {})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, response.read()

    def call(self, method: str, path: str, said: object = None) -> Any:
        """The answer of a route: JSON, or bytes of another type.

        Raises:
            Refusal: the answer is an error.
        """
        body = None if said is None else json.dumps(said).encode()
        status, headers, answer = self.send(method, path, body, self.headers)
        kind = headers.get("content-type", "").partition(";")[0]
        made: Any = json.loads(answer) if kind == "application/json" else answer
        check_answer(method, path.partition("?")[0], status, kind, made)
        if status >= 300:
            raise Refusal(status, made["error"], made["reason"])
        return made

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def post(self, path: str, /, **said: Any) -> Any:
        return self.call("POST", path, said)

    def delete(self, path: str) -> Any:
        return self.call("DELETE", path)


def check_answer(method: str, path: str, status: int, kind: str, answer: Any) -> None:
    """Check an answer against the document: its status, its type and its body."""
    for each in ROUTES:
        pattern = re.sub(r"\{\w+\}", "[^/]+", each.path)
        if each.method == method and re.fullmatch(pattern, path):
            responses = document()["paths"][f"/control/v1{each.path}"][method.lower()]["responses"]
            described = "4XX" if 400 <= status < 500 else str(status)
            assert described in responses, (method, path, status, answer)
            content = responses[described].get("content", {})
            assert kind in content or (not content and answer == b""), (method, path, kind)
            if kind == "application/json":
                validator(json.dumps(content[kind]["schema"])).validate(answer)
            return
    assert status in (404, 405), (method, path, status)


@cache
def validator(schema: str) -> Draft202012Validator:
    """A validator of a schema of the document, with formats and references to components."""
    made = {**json.loads(schema), "components": document()["components"]}
    kind = validator_for(made, default=Draft202012Validator)
    kind.check_schema(made)
    return kind(made, format_checker=kind.FORMAT_CHECKER)
