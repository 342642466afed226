"""Objects of the client, at hand in this Python.

    with Remote(client()) as remote:
        messaging = remote.module("qpid.messaging")
        connection = messaging.Connection.establish("guest/guest@127.0.0.1:5672")
        session = connection.session()
        session.sender("orders; {create: always}").send(messaging.Message(b"body"))

Python 2.7 runs in a process of its own. Text is `unicode` over there, and bytes are `str`; plain values come
back as values, all else as objects that can be called and asked for attributes in turn.
"""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import UUID

from typing_extensions import Self

from compat_tests.clients.qpid.python27 import Python27

__all__ = ["Remote", "RemoteError", "RemoteObject"]

SECONDS = 40
"""How long a process may live."""


class RemoteError(Exception):
    """What the client raised: the name of its class, its text, and what it was made of."""

    def __init__(self, name: str, text: str, of: list[Any], traceback: str) -> None:
        super().__init__(f"{name}: {text}\n{traceback}")
        self.name = name
        self.text = text
        self.of = of


class RemoteObject:
    """Something over there."""

    def __init__(self, remote: Remote, number: int, shown: str) -> None:
        self.__dict__.update(_remote=remote, _number=number, _shown=shown)

    def __repr__(self) -> str:
        return f"<{self._shown} on Python 2.7>"

    def __getattr__(self, name: str) -> Any:
        return self._remote.ask(on=self._number, get=name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._remote.ask(on=self._number, set=name, value=_encode(value))

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._remote.ask(
            on=self._number,
            given=[_encode(each) for each in given],
            named={name: _encode(each) for name, each in named.items()},
        )


class Remote:
    """A process that runs Python 2.7 as long as the block does."""

    def __init__(self, client: Python27) -> None:
        self._process = subprocess.Popen(
            client.command(str(Path(__file__).with_name("server27.py"))),
            env=client.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._guard = threading.Timer(SECONDS, self._process.kill)

    def __enter__(self) -> Self:
        self._guard.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._guard.cancel()
        self._guard.join()

    def module(self, name: str) -> Any:
        """A module, imported."""
        return self.ask(module=name)

    def ask(self, **request: Any) -> Any:
        """Have one thing done.

        Raises:
            RemoteError: it raised something.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"no answer to {request}: the client hangs or has died"
        answer = json.loads(line)
        if "error" in answer:
            of = [self._decode(each) for each in answer["of"]]
            raise RemoteError(answer["error"], answer["text"], of, answer["at"])
        return self._decode(answer["value"])

    def _decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if "object" in value:
            return RemoteObject(self, value["object"], value["shown"])
        ((kind, content),) = value.items()
        if kind == "bytes":
            return content.encode("latin-1")
        if kind == "uuid":
            return UUID(content)
        if kind == "list":
            return [self._decode(each) for each in content]
        return {self._decode(name): self._decode(each) for name, each in content}


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, UUID):
        return {"uuid": value.hex}
    if isinstance(value, list | tuple):
        return {"list": [_encode(each) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[_encode(name), _encode(each)] for name, each in value.items()]}
    if isinstance(value, RemoteObject):
        return {"object": value._number}
    raise TypeError(f"{value!r} has no counterpart on Python 2.7")
