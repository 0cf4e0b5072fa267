"""`vcbatch wait`: wait until an object meets a condition, or can no longer meet it."""
