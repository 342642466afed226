"""What a client library forgets to close, closed for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from unittest import mock

__all__ = ["forgotten_sockets_closed"]


@asynccontextmanager
async def forgotten_sockets_closed(seconds: float = 20) -> AsyncIterator[None]:
    """aiormq 6 never closes the socket of a connection that the broker has ended."""
    writers: list[asyncio.StreamWriter] = []
    open_connection = asyncio.open_connection

    async def noted(*args: Any, **options: Any) -> Any:
        reader, writer = await open_connection(*args, **options)
        writers.append(writer)
        return reader, writer

    with mock.patch.object(asyncio, "open_connection", noted):
        yield
    for writer in writers:
        writer.close()
        with suppress(OSError):
            await asyncio.wait_for(writer.wait_closed(), seconds)
