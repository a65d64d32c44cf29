"""The value calculus, its obligations, and the solver that decides them for every size at once."""
