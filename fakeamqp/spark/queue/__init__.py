"""Streaming read of classic and quorum queues.

A consumer in the driver takes messages in continuously, gives them numbers, and keeps them until Spark is
through with them. Where it keeps them, and when it acknowledges, is the acknowledgement mode: `spool`,
`commit` or `none`.
"""
