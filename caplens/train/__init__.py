"""Training: losses, batches, the loop, and one file for each recipe."""
