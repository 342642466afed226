"""The ASGI app: the API under `/api`, the control interface, and the inspector page where it is installed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from fakeamqp.management.control.app import routes
from fakeamqp.management.errors import absent
from fakeamqp.management.origins import OwnPages
from fakeamqp.management.resource import refused

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from fakeamqp.management.companion import ManagementCompanion


class _Bound(StringConvertor):
    """What a binding leads to: a queue or an exchange."""

    regex = "[qe]"


register_url_convertor("bound", _Bound())

_INSPECTOR = "fakeamqp.management.inspector"
"""A package with the function `routes`, which returns Starlette's routes of the page, and `PUBLIC` paths."""


def make_app(companion: ManagementCompanion, hosts: Iterable[str] = ()) -> Starlette:
    """The app of one broker or proxy, which is in its `state`.

    Args:
        companion: what the requests work with.
        hosts: names by which it may be asked, see `OwnPages`.
    """
    pages, public = _inspector()
    app = Starlette(
        routes=[*(_api() if companion.serves_api else ()), *routes(), *pages],
        exception_handlers={HTTPException: _failed},
    )
    app.router.redirect_slashes = False
    app.state.control = companion.control
    app.state.body_octets = 0  # Bytes of bodies that come in at the moment.
    if companion.serves_api:
        app.state.management = companion.management
    if pages:
        app.state.inspector = companion.inspector
    app.add_middleware(_RawPaths)
    app.add_middleware(OwnPages, hosts=hosts, public=public)
    return app


def _api() -> list[BaseRoute]:
    from fakeamqp.management.resources import RESOURCES

    return [Route(each.path, each) for each in RESOURCES]


def _inspector() -> tuple[list[BaseRoute], Collection[str]]:
    if find_spec(_INSPECTOR) is None:
        return [], ()
    from importlib import import_module

    inspector: Any = import_module(_INSPECTOR)
    return inspector.routes(), inspector.PUBLIC


def _failed(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    if problem.status_code == 404:
        return refused(absent())
    return PlainTextResponse(problem.detail, problem.status_code, dict(problem.headers or {}))


class _RawPaths:
    """Matches routes with the path as it was sent, so that a name may contain an encoded slash."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path")
        if raw is not None and scope["path"].startswith(("/api/", "/control/")):
            scope = {**scope, "path": raw.decode("ascii", "replace").rstrip("/")}
        await self._app(scope, receive, send)
