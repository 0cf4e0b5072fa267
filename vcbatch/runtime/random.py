"""The randomness of a running program: the operating system's."""

from __future__ import annotations

import secrets
import string
import uuid

# As Kubernetes' generated names: no vowels, no look-alikes, so that no word comes out by accident.
_ALPHABET = "".join(sorted(set(string.ascii_lowercase + string.digits) - set("aeiou013l")))
_SYSTEM = secrets.SystemRandom()


class SystemRandom:
    """`vcbatch.seams.Random` on the operating system's source."""

    def random(self) -> float:
        return _SYSTEM.random()

    def token(self, length: int) -> str:
        return "".join(secrets.choice(_ALPHABET) for _ in range(length))

    def uid(self) -> str:
        return str(uuid.uuid4())
