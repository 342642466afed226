"""The arguments that queues, exchanges and consumers take, and the policy keys: one row each.

A row says everything about one argument: its name, the option that it sets, how its value is read and
checked, which types take it in which personality, whether a redeclaration must repeat it, and how a policy
sets the same option. The rows are in `queue_arguments` and `exchange_arguments`; `policy_keys` has the policy
keys without an argument. Personalities, equivalence, policies and the records of options are derived from
the rows.
"""

from fakeamqp.model.arguments.exchange_arguments import ExchangeOptions, exchange_options
from fakeamqp.model.arguments.queue_arguments import (
    ConsumerOptions,
    QueueOptions,
    StreamOffset,
    consumer_options,
    queue_options,
    queue_type,
)

__all__ = [
    "ConsumerOptions",
    "ExchangeOptions",
    "QueueOptions",
    "StreamOffset",
    "consumer_options",
    "exchange_options",
    "queue_options",
    "queue_type",
]
