"""Runs each test on two personalities and reports what changes between them (`--amqp-compare`).

`protocol` runs a test on both, `conversation` finds the first point where the recorded conversations part,
`findings` looks for the choices that make the difference by running the test again, as `search` says, and
`summary` reports what was found.
"""
