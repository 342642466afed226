"""AMQP 0-9 of December 2006, and 0-8, which differs from it in a few method and class numbers.

Reading order: `amqp_0_9_1.server_connection.Amqp091Connection` splits bytes into frames;
`server_connection.Amqp09Connection` is its subclass for 0-9, `Amqp08Connection` for 0-8.
`server_channel.Amqp09Channel` is one channel: it assembles contents and keeps the state of each AMQP class.
`requests` is the layer of request and response frames. `dispatch.HANDLERS` maps methods to handlers, which
one module per AMQP class has; `content_classes` is shared by file and stream.

RabbitMQ answers the protocol header of 0-9 with 0-9-1: no byte differs (measured on 4.0.5 and 4.3.6). So in
`rabbitmq-*` personalities a connection is a `rabbitmq.RabbitMQ09Connection`: the methods that both protocols
have, and RabbitMQ's extensions, are those of `amqp_0_9_1`; what 0-9-1 does not have comes from here. RabbitMQ
refuses all of that, so no client of RabbitMQ sends it.
"""
