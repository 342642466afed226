"""AMQP 0-9 of December 2006, and 0-8, which differs from it in few numbers.

Reading order: `server_connection` holds the connection and `server_channel` one channel, which assembles its
contents; what both share with 0-9-1 is in `framed`. One module or package per AMQP class says what each
method does. `codec` has the methods, `faults` and `trace` what fault rules and traces ask of the protocol,
`public` what `Broker.amqp_0_9` offers to tests.
"""
