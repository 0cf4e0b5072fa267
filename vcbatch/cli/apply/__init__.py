"""`vcbatch apply` and `vcbatch delete`: files brought to a server, after a look at what that changes."""
