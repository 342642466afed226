"""A quorum queue as clients see it: the guarantees of a classic queue, other rules.

Source: RabbitMQ's documentation, otherwise measurements or its source code. `QuorumChoices` has the
differences between its versions.
"""
