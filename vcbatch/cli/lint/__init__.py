"""`vcbatch lint`: the admission errors of objects in files, with their lines."""
