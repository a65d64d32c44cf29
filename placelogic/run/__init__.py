"""How a step program runs on one mesh, whatever the numbers are: exact ones, tensors of PyTorch, or lines of a script."""
