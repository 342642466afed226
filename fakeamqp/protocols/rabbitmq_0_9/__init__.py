"""AMQP 0-9 as RabbitMQ takes it: 0-9-1 with RabbitMQ's extensions, and beside it what only 0-9 has.

RabbitMQ answers the protocol header of 0-9 with 0-9-1: no byte differs (measured on 4.0.5 and 4.3.6). So the
methods that both protocols have, and RabbitMQ's extensions, are those of package `amqp_0_9_1` here. What
0-9-1 does not have comes from package `amqp_0_9`: classes, frame types, methods inside requests, child
contents. RabbitMQ refuses all of that, so no client of RabbitMQ sends it.

This package is not a protocol but composes two, as `Broker` composes packages; neither of them knows it.
`server_connection.connection` chooses between this and the letter of 0-9, by the personality.
"""
