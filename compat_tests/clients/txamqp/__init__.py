"""txAMQP, a client of AMQP 0-9 and 0-8 for Twisted, with its own test suite and tests of ours that use it."""
