"""The log of a job on a terminal: whose line it is, why there is none yet, and what starts again."""
