"""Completion in shells: scripts that ask the program, and names that it asks the server for."""
