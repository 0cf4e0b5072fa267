"""`vcbatch lint`: what admission would say of objects in files, and in which line."""
