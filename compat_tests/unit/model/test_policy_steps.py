"""A policy over many queues is matched in steps, each with a bound of work."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.model.patterns import MOST_STEPS
from fakeamqp.model.patterns.matching import Program
from fakeamqp.model.queues import QueueDeclaration


def test_each_step_of_setting_policy_searches_one_queue_name_within_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server()
    for number in range(20):
        server.vhost.queues.declare(f"{number:0200}!", QueueDeclaration(durable=True))
    searches: list[int] = []
    run = Program.run

    def counting(program: Program, text: str) -> tuple[bool, int]:
        found = run(program, text)
        searches.append(found[1])
        return found

    monkeypatch.setattr(Program, "run", counting)
    value = {"pattern": "^((.{0,99}){0,99}){0,9}$x", "definition": {"max-length": 1}, "priority": 0}
    most = 0
    for _ in server.vhost.policies.setting("slow", value):
        most = max(most, len(searches))
        assert max(searches, default=0) < 1.1 * MOST_STEPS
        searches.clear()
    assert most == 1
    assert all(queue.policy is None for queue in server.vhost.queues.values())
