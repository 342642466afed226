"""AMQP 1.0 as RabbitMQ 4 speaks it.

Reading order: `server_connection` splits the input into frames and has the connection's state; `opening` has
SASL and open; `session` has the windows and hands frames to the links. `links` has what all links do:
`receiving` are those on which a client sends, `sending` those on which it receives, and `management` the pair
of links that declares queues and exchanges. `addresses` and `termini` read what links name, `filters` those
of sources, `messages` the sections of a message; `conversion` and `values` convert messages from and to
0-9-1. `proxied` is the leg to a client of a proxy.
"""
