"""Benchmarks: one module per data set of human judgements."""
