"""An example of what another package can bring to caplens."""
