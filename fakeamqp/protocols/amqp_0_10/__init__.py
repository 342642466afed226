"""AMQP 0-10: connections, sessions and their commands.

Reading order: `server_connection` cuts frames, `command_streams` numbers commands and carries them out for a
session (`server_session`), and one module per AMQP class says what each command does, in a function of its
name. `codec` has the commands, `dialect` what other packages know of its bytes, `port` what faults may do to
a connection.
"""
