"""The operations of layers, run: one way through the blocks of a plan, whoever computes.

Which places of every tensor each device has follows from the plan and is known without numbers (`lay`, `crossing`);
`chain` goes through the plan, `operations` has what each operation is, over the algebra that exact numbers, PyTorch and
the lines of a script carry out."""
