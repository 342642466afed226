"""Sessions: their state, attached or not, and their two streams of commands."""
