"""What a trace knows of 0-9 and 0-9-1 alike: frames in words, how they are read, and what is secret."""
