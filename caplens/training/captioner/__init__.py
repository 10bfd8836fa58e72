"""Training captioners: the small decoder of caplens-mini-captioner."""
