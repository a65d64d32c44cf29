"""Findings as data, and one short renderer per format."""
