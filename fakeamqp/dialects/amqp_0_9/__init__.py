"""AMQP 0-9, as the broker speaks it: one module per class."""
