"""What `vcbatch` shows of a recorded cluster, screen by screen."""
