"""Evidence beside a verdict: a second solver's answers, and every question as a file."""
