"""AMQP 0-9 of December 2006, and 0-8, which differs from it in a few method and class numbers.

Reading order: `amqp_0_9_1.server_connection.Amqp091Connection` splits bytes into frames;
`server_connection.Amqp09Connection` is its subclass for 0-9 and `version_0_8` makes one for 0-8.
`server_channel.Amqp09Channel` is one channel: it assembles contents and keeps the state of each AMQP class.
`requests` is the layer of request and response frames. `dispatch.HANDLERS` maps methods to handlers. One
module or package per AMQP class has the handlers: `connection`, `channel`, `access`, `exchange`, `queue`,
`basic` (with `publishing`), `file`, `stream`, `message`, `tx`, `dtx`, `tunnel`. `consuming` and `contents`
are shared by file and stream. `opening` and `resume` open channels and resume interrupted ones. `out_of_band`
and `trace_frames` handle the other frame types.

`choices` and `overrides` have the choices of a personality that are specific to 0-9. `codec` has the methods,
`dialect` what other packages know of its bytes, `port` what faults may do to a connection, `public` the API
`Broker.amqp_0_9`.

RabbitMQ answers the protocol header of 0-9 with 0-9-1: no byte differs (measured on 4.0.5 and 4.3.6). So in
`rabbitmq-*` personalities a connection is a `rabbitmq_connection.RabbitMQ09Connection`: the methods that both
protocols have, and RabbitMQ's extensions, are those of `amqp_0_9_1`; what 0-9-1 does not have comes from
here. RabbitMQ refuses all of that, so no client of RabbitMQ sends it.
"""
