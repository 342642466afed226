"""Bytes to frames to typed methods and back, one package per dialect. No state, no sockets."""
