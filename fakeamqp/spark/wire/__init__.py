"""A small client of AMQP 0-9-1, which publishes and consumes."""
