"""AMQP 1.0 on a personality beside the real RabbitMQ: the same scenarios, frame by frame."""
