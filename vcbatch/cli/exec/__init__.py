"""`vcbatch job exec`: run a command in a pod of a job."""
