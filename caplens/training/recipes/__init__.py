"""Training recipes: one module and one dataclass each, with the values in a TOML file beside it."""
