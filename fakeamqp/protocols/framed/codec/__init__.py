"""What AMQP 0-9 and 0-9-1 share on the wire: frames, strings, field tables, the shape of a method."""
