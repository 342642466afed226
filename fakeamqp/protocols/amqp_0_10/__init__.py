"""AMQP 0-10: connections, sessions and their commands.

Reading order: `server_connection` cuts frames, `sessions` numbers and carries out commands, and one module or
package per AMQP class says what each command does. `codec` has the commands, `faults` and `trace` what fault
rules and traces ask of the protocol.
"""
