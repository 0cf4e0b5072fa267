"""Ports for programs that can't choose one themselves."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """A free port of 127.0.0.1, outside of the range of ephemeral ports."""
    for port in random.sample(range(20000, 32000), 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port between 20000 and 32000")
