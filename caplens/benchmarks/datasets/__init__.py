"""One file for each data set of human judgements."""
