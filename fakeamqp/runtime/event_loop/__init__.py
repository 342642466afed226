"""Runs a broker inside the event loop of the test: no thread, and no lock to wait for."""
