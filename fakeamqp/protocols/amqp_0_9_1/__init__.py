"""AMQP 0-9-1: the protocol of RabbitMQ and its clients. 0-9 and 0-8 build on it (`amqp_0_9`).

Reading order: `server_connection.Amqp091Connection` splits bytes into frames and turns errors into closes;
`connection` handles class connection, from the handshake to the close. `server_channel.Amqp091Channel` is one
channel: it assembles contents and sends publisher confirms; its base class in `base_channel` keeps consumers
and unacknowledged deliveries. `dispatch.HANDLERS` maps methods to handlers. One module per AMQP class has the
handlers: `channel`, `access`, `exchange`, `queue`, `basic` (with `publishing` and `delivering`), `confirm`,
`tx`.
`codec` has the methods, `dialect` what other packages know of its bytes, `port` what faults may do to a
connection.
"""
