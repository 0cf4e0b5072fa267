"""`vcbatch examples`."""
