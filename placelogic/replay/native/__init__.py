"""The native way: shipped components of PyTorch train a small transformer as the spec says they do."""
