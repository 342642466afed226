"""AMQP 0-9-1: the protocol of RabbitMQ and its clients.

Reading order: `server_connection` holds the connection and `server_channel` one channel, which assembles its
contents; what both share with 0-9 is in `framed`. One module per AMQP class says what each method does:
`connection`, `channel`, `access`, `exchange`, `queue`, `basic` (with `publishing`), `confirm`, `tx`.
`codec` has the methods, `faults` and `trace` what fault rules and traces ask of the protocol.
"""
