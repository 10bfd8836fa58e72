"""caplens in the shape of other tools, so that it fits into code written for them."""
