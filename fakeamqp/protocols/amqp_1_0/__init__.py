"""AMQP 1.0 as RabbitMQ 4 speaks it.

MessageChoices order: `server_connection` splits the input into frames and has the connection's state; `sasl` and
`opening` lead to an open connection; `session` has the windows and hands frames to the links. `receiving` are
the links on which a client sends, `sending` those on which it receives, and `management` the pair of links
that declares queues and exchanges. `addresses` reads what links name, `messages` the sections of a message.
"""
