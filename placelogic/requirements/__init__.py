"""What a spec or a repository requires beside right training: claims and budgets, expected verdicts, sizes reached."""
