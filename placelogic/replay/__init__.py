"""Replay: the step program executed by PyTorch, with real collectives, beside single-device training.

torch is imported in this folder only, and only by who replays. See docs/replay.md.
"""
