"""One file for each format that captions are read from and written to."""
