"""How many requests of a kind are under way at a time.

Pods get their nodes as fast as they are made only while more binds than creates are under way: where the server is the
limit, each kind gets its share of it by how many wait there. With more creates, gangs wait for their binds behind the
pods of later ones, for seconds in a load of thousands, and nothing ends sooner.
"""

from __future__ import annotations

from typing import Final

BINDS: Final = 32
CREATES: Final = BINDS // 2
"""And deletes, of all that the controllers make."""
