"""A small blocking client for AMQP 0-10, on the project's own wire package: see `client`."""
