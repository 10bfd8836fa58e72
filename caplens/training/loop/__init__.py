"""The training loop, and what all recipes use with it: losses, towers, features, process groups."""
