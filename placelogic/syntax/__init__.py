"""Text to syntax tree and back: the grammar, the tree with its places, the formatter."""
