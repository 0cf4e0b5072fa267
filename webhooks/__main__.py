"""`python -m webhooks` prints the shipped configurations, pointed at a service, for `kubectl apply -f -`."""

import sys


def _only_our_own_path() -> None:
    """Remove the current directory from the module path. Without `-P` it comes first, and a file there with the name of
    a third-party module must not be executed. The directory of the package itself is added at the end."""
    ours = __file__.rpartition("/webhooks/")[0]
    if not sys.flags.safe_path and sys.path and sys.path[0] != ours:
        del sys.path[0]
    if ours not in sys.path:
        sys.path.append(ours)


if __name__ == "__main__":
    _only_our_own_path()
    from webhooks.printing import main

    main()
