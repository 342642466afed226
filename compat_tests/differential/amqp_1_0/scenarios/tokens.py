"""Scenarios of new credentials: PUT /auth/tokens of the management node."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.amqp_1_0.scenarios.play import Play, each


@each(
    token=("PUT", "/auth/tokens", b"token"),
    empty=("PUT", "/auth/tokens", b""),
    query=("PUT", "/auth/tokens?x=1", b"token"),
    text=("PUT", "/auth/tokens", "token"),
    nothing=("PUT", "/auth/tokens", None),
    get=("GET", "/auth/tokens", None),
    deeper=("PUT", "/auth/tokens/x", b"token"),
    elsewhere=("PUT", "/auth/x", b"token"),
)
def tokens(play: Play, request: tuple[str, str, Any]) -> None:
    peer = play.peer().session().managed()
    peer.request(*request)
    peer.note()
    peer.request("GET", "/queues/none")
    peer.note()
