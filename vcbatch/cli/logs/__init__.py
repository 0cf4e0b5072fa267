"""The log of a job on a terminal: line prefixes, why there is no output yet, and restarts."""
