"""What faults know of 0-9 and 0-9-1 alike: methods with their contents, how they are looked at and broken."""
