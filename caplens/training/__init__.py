"""Training: the loop, the recipes, and caplens-mini."""
