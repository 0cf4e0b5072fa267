"""What all commands share: the way to the server, options, output, tables, the state directory."""
