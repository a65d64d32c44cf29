"""The step program: plain frozen data that four readers share (prove, simulate, cost, replay)."""
