"""AMQP 0-9-1: the protocol of RabbitMQ and its clients.

Reading order: `framed.server_connection.FramedConnection` splits bytes into frames;
`server_connection.Amqp091Connection` is its subclass for 0-9-1. `server_channel.Amqp091Channel` is one
channel: it assembles contents and sends publisher confirms. `dispatch.HANDLERS` maps methods to handlers. One
module per AMQP class has the handlers: `connection`, `channel`, `access`, `exchange`, `queue`, `basic` (with
`publishing`), `confirm`, `tx`.
`codec` has the methods, `faults` and `fault_port` the protocol's part of fault rules, `trace` its part of
traces.
"""
