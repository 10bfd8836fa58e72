"""Training caplens-mini: its data, its networks, and the export to ONNX."""
