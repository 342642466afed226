"""Apache's Python client for AMQP 0-10 and its test suite. Both run on Python 2.7 only."""
