"""Runs a broker in a thread of its own, with sockets and a lock for the threads of a test."""
