"""`vcbatch run`: a program as a job, from here to its exit code."""
