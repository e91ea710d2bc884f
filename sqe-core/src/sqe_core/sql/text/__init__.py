"""What text consists of before any grammar: tokens, limits, positions, literals, and a place to read from."""
