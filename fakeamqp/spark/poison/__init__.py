"""Messages that cannot be parsed: found, and published as dead letters."""
