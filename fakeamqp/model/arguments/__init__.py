"""The arguments that queues, exchanges and consumers take, and the policy keys: one row each.

A row says everything about one argument: its name, the option that it sets, how its value is read and
checked, which types take it in which personality, whether a redeclaration must repeat it, and how a policy
sets the same option. The rows are in `queue_arguments`, `exchange_arguments` and `consumer_arguments`;
`policy_keys` and `mirroring` have the policy keys without an argument. Personalities, equivalence, policies
and the records of options are derived from the rows.
"""

from fakeamqp.model.arguments.consumer_arguments import ConsumerOptions, StreamOffset, consumer_options
from fakeamqp.model.arguments.exchange_arguments import ExchangeOptions, exchange_options
from fakeamqp.model.arguments.queue_arguments import QueueOptions, queue_options, queue_type

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
