"""`python -m compat_tests.management [VERSION...]` records the answers of RabbitMQ anew.

It prints what the broker answers otherwise and no reason is known for.
"""

from __future__ import annotations

import sys

from compat_tests.management.comparison import compared
from compat_tests.management.recording import record, record_node, write
from compat_tests.management.scenario import Target
from fakeamqp import Broker

VERSIONS = ("4.0", "4.3")

for version in sys.argv[1:] or VERSIONS:
    real = record_node(version)
    write(version, real)
    with Broker(management=True, personality=f"rabbitmq-{version}") as broker:
        ours = record(Target(broker.port, broker.admin.management_url))
    new, unused = compared(version, real, ours)
    print(f"{version}: {len(real)} answers, {len(new)} differences without a reason")
    print(*(f"  {each}" for each in new), *(f"  not needed: {each}" for each in unused), sep="\n")
