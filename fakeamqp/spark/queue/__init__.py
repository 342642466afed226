"""Streaming read of classic and quorum queues.

A consumer in the driver takes messages continuously, numbers them, and keeps them until Spark has processed
them. The acknowledgement mode, `spool`, `commit` or `none`, decides where it keeps them and when it
acknowledges them.
"""
