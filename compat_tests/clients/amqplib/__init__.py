"""amqplib, a client of AMQP 0-8. For Python 3 only Debian has it: the package `python3-amqplib`."""
