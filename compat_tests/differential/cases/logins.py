"""Logins that fail: by what, how they are told, and how late."""

from __future__ import annotations

import time
from typing import Any

from compat_tests.differential.raw_client import CAPABILITIES
from compat_tests.differential.script import *

REFUSAL = 5.0
WITHOUT = {name: True for name in CAPABILITIES if name != "authentication_failure_close"}


def refused(name: str, **how: Any) -> None:
    """How a login fails, and whether at once or after a second or more."""

    @case(f"login/{name}")
    def _(scene: Scene) -> list[str]:
        client = scene.client(handshake=False)
        client.until("connection.start")
        client.answers = False
        client.tell(0, "connection.start-ok", **_start_ok(**how))
        began = time.monotonic()
        came = client.until("connection.tune", seconds=REFUSAL)
        passed = time.monotonic() - began
        when = "at once" if passed < 0.7 else "after a second" if passed < 2.0 else "later"
        if "connection.close(" in came[-1]:
            client.tell(0, "connection.close-ok")
            came += client.drain(REFUSAL)
        return [*came, when]


def _start_ok(
    user: str = "guest",
    password: str = "guest",
    mechanism: str = "PLAIN",
    response: str | None = None,
    capabilities: Any = CAPABILITIES,
    locale: str = "en_US",
) -> dict[str, Any]:
    return {
        "client_properties": {"product": "differential tests", "capabilities": capabilities},
        "mechanism": mechanism,
        "response": f"\0{user}\0{password}" if response is None else response,
        "locale": locale,
    }


refused("when-password", password="wrong")
refused("when-password-untold", password="wrong", capabilities=WITHOUT)
refused("when-user", user="nobody")
refused("when-blank-password", password="")
refused("when-blank-user", user="")
refused("when-blank-user-and-password", user="", password="")
refused("when-mechanism", mechanism="BOGUS")


def answered(name: str, **how: Any) -> None:
    """How a login ends."""

    @case(f"login/{name}")
    def _(scene: Scene) -> list[str]:
        client = scene.client(handshake=False)
        client.until("connection.start")
        client.tell(0, "connection.start-ok", **_start_ok(**how))
        return client.until("connection.tune", seconds=REFUSAL)


answered("long-user", user="u" * 300)
answered("user-with-capitals", user="Guest")
answered("user-with-blanks", user=" guest ")
answered("password-with-blanks", password="guest ")
answered("response-without-nul-untold", response="guest", capabilities=WITHOUT)
answered("blank-password-untold", password="", capabilities=WITHOUT)
answered("capability-as-a-number", password="wrong", capabilities={"authentication_failure_close": 1})
answered("mechanism-with-blank", mechanism="PLAIN ")
answered("locale-blank", locale="")


def to_vhost(name: str, virtual_host: str, **how: Any) -> None:
    """How opening a virtual host fails, and when."""

    @case(f"login/{name}")
    def _(scene: Scene) -> list[str]:
        client = scene.client(handshake=False)
        client.start_ok(**how)
        client.until("connection.tune")
        client.tell(0, "connection.tune-ok", channel_max=2047, frame_max=131072, heartbeat=0)
        client.tell(0, "connection.open", virtual_host=virtual_host)
        began = time.monotonic()
        came = client.until("connection.open-ok", seconds=REFUSAL)
        when = "at once" if time.monotonic() - began < 0.7 else "later"
        return [*came, when, *client.drain(REFUSAL)]


to_vhost("vhost-without-access", "probe-empty")
to_vhost("vhost-without-access-untold", "probe-empty", capabilities=WITHOUT)
to_vhost("vhost-missing-untold", "nope", capabilities=WITHOUT)
to_vhost("vhost-of-a-user-without-any", "/", user="probe-novhost", password="novhost")

each(
    "login/of-a-new-user",
    connect("b", user="@u", password="p"),
    [operate("add_user", "@u", "p")],
    connect("c", user="@u", password="p"),
    [operate("delete_user", "@u")],
    connect("d", user="@u", password="p"),
)
each(
    "login/with-the-old-and-the-new-password",
    [operate("add_user", "@u", "p"), operate("change_password", "@u", "q")],
    connect("b", user="@u", password="p"),
    connect("c", user="@u", password="q"),
    [operate("delete_user", "@u")],
)
each(
    "login/without-permissions-any-more",
    [operate("add_user", "@u", "p"), operate("clear_permissions", "@u")],
    connect("b", user="@u", password="p"),
    [operate("set_permissions", "@u", "", "", "")],
    connect("c", user="@u", password="p"),
    queue(on="c"),
    [operate("delete_user", "@u")],
)
each(
    "login/to-a-new-vhost",
    connect("b", vhost="@v"),
    [operate("add_virtual_host", "@v")],
    connect("c", vhost="@v"),
    queue(on="c"),
    connect("d", vhost="@v", user="probe-limited", password="limited"),
    [operate("delete_virtual_host", "@v")],
    connect("e", vhost="@v"),
)
