"""Shared by all commands: the connection to the server, options, output, tables, the state directory."""
