"""Readers of configuration files: JSON, YAML, TOML, and arguments of a command line. All yield `Value`s."""
