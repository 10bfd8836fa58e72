"""The training loop and what every recipe runs it with: batches, losses, towers, processes."""
