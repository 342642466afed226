"""What a rule can do to a frame group: one class per action. The rows are the methods of `Rule`."""
