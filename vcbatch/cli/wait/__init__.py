"""`vcbatch wait`: until an object meets a condition, or never can."""
