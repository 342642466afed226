"""Sets of personalities that take an argument or a policy key, by name. `spec` follows RabbitMQ 4.2.

What 3.10 takes is what a node of 3.10.8 says of itself: the arguments in the capabilities of its queue types,
and its registered validators of policies. 4.1 takes what 4.0 takes (tagged source of 4.1.8).
"""

from __future__ import annotations

from typing import Final, TypeAlias

__all__ = [
    "EVERY",
    "NONE",
    "ONLY_3_13",
    "SINCE_3_13",
    "SINCE_4_0",
    "SINCE_4_2",
    "SINCE_4_3",
    "UNTIL_3_13",
    "UNTIL_4_2",
    "Versions",
]

Versions: TypeAlias = frozenset[str]

NONE: Final[Versions] = frozenset()
ONLY_3_13: Final[Versions] = frozenset({"rabbitmq-3.13"})
UNTIL_3_13: Final[Versions] = ONLY_3_13 | {"rabbitmq-3.10"}
SINCE_4_3: Final[Versions] = frozenset({"rabbitmq-4.3"})
SINCE_4_2: Final[Versions] = SINCE_4_3 | {"rabbitmq-4.2", "spec"}
SINCE_4_0: Final[Versions] = SINCE_4_2 | {"rabbitmq-4.0", "rabbitmq-4.1"}
SINCE_3_13: Final[Versions] = SINCE_4_0 | ONLY_3_13
EVERY: Final[Versions] = SINCE_4_0 | UNTIL_3_13
UNTIL_4_2: Final[Versions] = EVERY - SINCE_4_3
