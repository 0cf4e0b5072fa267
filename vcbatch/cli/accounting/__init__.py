"""`vcbatch accounting`: records of jobs, and usage."""
