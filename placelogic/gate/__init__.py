"""The gate: the policy of a repository, applied to the reports on its specs."""
