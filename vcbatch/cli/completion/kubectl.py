"""The program `kubectl_complete-vcbatch`, which kubectl calls to complete `kubectl vcbatch …`.

Its arguments are the words after `vcbatch`, the incomplete one last. It prints one completion a line, and then `:4`,
which means "no file names" (spf13/cobra `ShellCompDirectiveNoFileComp`; 0 allows files).
"""

from __future__ import annotations

import sys

from click.shell_completion import ShellComplete

_NO_FILES, _FILES = 4, 0


def main() -> None:
    """Complete the words of the command line."""
    from vcbatch.cli.main import cli

    *before, typed = sys.argv[1:] or [""]
    offers = ShellComplete(cli, {}, "vcbatch", "").get_completions(before, typed)
    for offer in offers:
        if offer.type == "plain":
            sys.stdout.write(f"{offer.value}\t{offer.help}\n" if offer.help else f"{offer.value}\n")
    sys.stdout.write(f":{_FILES if any(offer.type in ('file', 'dir') for offer in offers) else _NO_FILES}\n")
