"""How caplens-mini is trained: its data, its networks, and its export to ONNX."""
