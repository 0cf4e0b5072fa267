"""`python -m vcbatch` is the command `vcbatch`."""

import sys


def _only_our_own_path() -> None:
    """Without `-P` the first place where modules are looked for is the current folder, or this one; whatever is there
    named like a module of somebody else must not be executed. Last comes the folder of the package itself."""
    ours = __file__.rpartition("/vcbatch/")[0]
    if not sys.flags.safe_path and sys.path and sys.path[0] != ours:
        del sys.path[0]
    if ours not in sys.path:
        sys.path.append(ours)


if __name__ == "__main__":
    _only_our_own_path()
    from vcbatch.cli.main import main

    main()
