"""The command line: one file for each subcommand, which only parses and calls."""
