"""`vcbatch job exec`: a command in a pod of a job."""
