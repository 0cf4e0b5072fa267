"""`vcbatch run`: run a program as a job, from submission to its exit code."""
