"""What the clients on asyncio have in common: the way through, with a bound for every step."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from typing import Any
from unittest import mock

import aiormq

from compat_tests.clients.forgotten import forgotten_sockets_closed
from compat_tests.faults.observation import InVain, Observation, trouble
from compat_tests.faults.scenario import BODIES, Stage

__all__ = ["Work"]

_TICK = 0.02


class Work(ABC):
    """One client's way through the scenario."""

    reconnects = False
    """Whether it is worth while to go on after a connection has ended."""
    connection: Any = None
    channel: Any = None

    def __init__(self, stage: Stage) -> None:
        self.stage, self.seen = stage, Observation()

    @classmethod
    def run(cls, stage: Stage) -> Observation:
        """Run it in a loop of its own; aiormq's patience with heartbeats is shortened."""

        async def all() -> Observation:
            work = cls(stage)
            async with forgotten_sockets_closed():
                try:
                    await work.all()
                finally:
                    await work.tried("closing", work.close())
            return work.seen

        with (
            mock.patch.object(aiormq.Connection, "HEARTBEAT_GRACE_MULTIPLIER", 2, create=True),
            mock.patch.object(aiormq.Connection, "READER_CLOSE_TIMEOUT", 0.2, create=True),
        ):
            return asyncio.run(all())

    @property
    def url(self) -> str:
        return (
            f"amqp://guest:guest@{self.stage.host}:{self.stage.port}/"
            f"?heartbeat={self.stage.scenario.heartbeat}"
        )

    @abstractmethod
    async def connect(self) -> None: ...

    @abstractmethod
    async def declare(self) -> None: ...

    @abstractmethod
    async def publish(self, body: str) -> None:
        """Publish, and wait for the confirm."""

    @abstractmethod
    async def consume(self) -> None:
        """Take messages until cancelled, or until consuming has ended."""

    def usable(self) -> bool:
        """Whether the channel can be used, perhaps after a moment."""
        return not (self.connection.is_closed or self.channel.is_closed)

    async def close(self) -> None:
        if self.connection is not None:
            await self.connection.close()

    async def all(self) -> None:
        stage = self.stage
        if not await self.tried("connecting", self.connect()):
            return
        stage.reached("connected")
        if not await self.tried("declaring", self.declare()):
            return
        stage.reached("declared")
        if stage.scenario.together:
            # Created in order, each publishes before it waits.
            await asyncio.gather(*[self.published(body) for body in BODIES])
        else:
            for body in BODIES:
                if not await self.published(body) and (self.seen.gave_up or not self.usable()):
                    return
        stage.reached("published")
        if not self.usable():
            return
        consuming = asyncio.ensure_future(self.consume())
        try:
            stage.reached("consuming")
            if await self.tried("consuming", self.until_over(consuming, 1)) and stage.scenario.waits:
                stage.reached("waiting")
                times = stage.scenario.patience
                await self.tried("waiting", self.until_over(consuming, times), times)
        finally:
            consuming.cancel()
            await asyncio.wait([consuming], timeout=stage.patience)

    async def published(self, body: str) -> bool:
        if not await self.tried("publishing", self.publish(body)):
            return False
        self.seen.confirmed.append(body)
        return True

    async def tried(self, step: str, doing: Awaitable[Any], times: float = 1) -> bool:
        """Whether it could be done; what it raised is noted."""
        task = asyncio.ensure_future(doing)
        done, _ = await asyncio.wait([task], timeout=self.stage.patience * times + (times > 1))
        if not done:
            task.cancel()
            await asyncio.wait([task], timeout=self.stage.patience)
            self.seen.troubles.append(trouble(step, InVain()))
            return False
        error: BaseException | None
        try:
            error = task.exception()
        except asyncio.CancelledError as cancelled:
            error = cancelled
        if error is not None:
            self.seen.troubles.append(trouble(step, error))
        return error is None

    async def until_over(self, consuming: asyncio.Future[None], times: float) -> None:
        for _ in range(int(self.stage.patience * times / _TICK)):
            await asyncio.wait([consuming], timeout=_TICK)
            if consuming.done():
                await consuming
                self.seen.tell("no more messages")
                return
            if self.stage.over():
                return
        raise InVain
