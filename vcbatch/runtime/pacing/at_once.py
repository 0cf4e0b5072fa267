"""How many requests of a kind run at a time.

Pods are bound as fast as they are created only while more binds than creates run concurrently: where the server is the
limit, each kind gets a share of it by the number of its requests. With more creates, gangs wait for their binds behind
the pods of later ones, for seconds in a load of thousands, and no job ends sooner.
"""

from __future__ import annotations

from typing import Final

BINDS: Final = 32
CREATES: Final = BINDS // 2
"""Concurrent creates and deletes of the controllers."""
