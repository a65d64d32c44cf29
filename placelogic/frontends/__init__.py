"""From what people already have to specs: configurations of frameworks, and live models."""
