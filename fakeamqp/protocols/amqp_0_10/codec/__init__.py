"""AMQP 0-10 on the wire."""
