"""Shell completion: scripts that call vcbatch, and completions that query the server."""
