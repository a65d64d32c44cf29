"""The operations of layers in PyTorch: blocks run forward and backward on every device, as the plan says.

Each rank has its own piece of every tensor; which pieces the others have follows from the plan and is known to
all. Values cross between devices by collectives, at the boundaries of the plan and nowhere else."""
