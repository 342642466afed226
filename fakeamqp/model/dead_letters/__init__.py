"""Dead letters: their headers, their routes, and those held until they are delivered."""
