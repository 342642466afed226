"""The cases, by concept. Importing a module adds its cases to `script.CASES`."""
