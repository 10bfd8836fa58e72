"""Training: the loop, one recipe per file, and caplens-mini."""
