"""The codec of AMQP 1.0."""
