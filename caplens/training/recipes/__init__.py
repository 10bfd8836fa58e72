"""One file and one dataclass for each recipe, and the TOML with its values."""
