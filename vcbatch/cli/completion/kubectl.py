"""What kubectl calls to complete `kubectl vcbatch …`: a program `kubectl_complete-vcbatch` on the PATH.

It gets the words after `vcbatch`, the one that is being typed last, and prints what that may become, one a line, and
then `:4`, which stands for "and no file names" (spf13/cobra `ShellCompDirectiveNoFileComp`; 0 lets files in).
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
