"""Volcano's own commands, for scripts and programs that call them: `vcctl`, `vsub`, `vjobs` and the others.

Input and output of scripts are identical to Volcano's: flags, columns, messages, exit codes. docs/differences-cli.md
lists the exceptions, where Volcano's behaviour would do harm.
"""
