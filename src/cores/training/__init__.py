"""Training loops, and what makes them stop and resume."""
