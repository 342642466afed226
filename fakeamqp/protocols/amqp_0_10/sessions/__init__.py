"""Sessions: what is known of one, attached or not, and its two streams of commands."""
