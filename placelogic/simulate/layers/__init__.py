"""The exact simulation of the operations of layers, forward and backward, on every device of a small mesh.

Devices hold small arrays of integers modulo a prime, collectives add by position, and nonlinear functions are
arbitrary ones whose derivatives are arbitrary too. One device runs the same operations on whole arrays."""
