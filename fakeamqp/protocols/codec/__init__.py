"""Bytes to frames to typed methods and back, one package per protocol. No state, no sockets."""
