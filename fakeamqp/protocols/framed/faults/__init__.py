"""What faults know of 0-9-1 and 0-9 alike: frame groups, their fields, and ways to send them malformed."""
