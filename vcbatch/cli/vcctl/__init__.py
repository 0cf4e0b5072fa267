"""Volcano's own commands, for the scripts and programs that call them: `vcctl`, `vsub`, `vjobs` and the others.

What a script gives and parses is Volcano's to the byte: flags, columns, sentences, exit codes. Where that does harm,
docs/differences-cli.md says what is done in its place.
"""
