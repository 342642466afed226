"""Prints what happens under some seeds, for tests that compare processes: schedule_program.py SEEDS."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import uuid

from fakeamqp import simulation


async def program() -> list[object]:
    """Some tasks over some connections, with values that are not the same in two processes by themselves."""
    happened: list[object] = [
        uuid.uuid4().hex,
        os.urandom(4).hex(),
        random.random(),
        random.SystemRandom().random(),
    ]
    names = {"anna", "bert", "carl", "dora"}  # The order depends on the hash seed.

    async def serve(reader, writer):
        while line := await reader.readline():
            happened.append(("served", line))
            writer.write(line)
            await asyncio.sleep(0.001)
        writer.close()

    async def client(name):
        reader, writer = await asyncio.open_connection("localhost", 5672)
        for number in range(4):
            writer.write(f"{name} {number}\n".encode())
            happened.append(("answered", await reader.readline()))
            await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(serve, "localhost", 5672)
    await asyncio.gather(*map(client, sorted(names)))
    tasks = {asyncio.ensure_future(client(name)) for name in ("e", "f", "g")}
    await asyncio.wait(tasks)
    happened.extend(task.get_name() for task in tasks)
    server.close()
    return happened


if __name__ == "__main__":
    for seed in range(int(sys.argv[1])):
        schedule = simulation.Schedule(seed)
        print(seed, simulation.run(program(), schedule=schedule))
        for decision in schedule.decisions:
            print(decision)
