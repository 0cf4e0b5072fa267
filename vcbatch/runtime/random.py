"""The randomness of a running program: the operating system's."""

from __future__ import annotations

import os
import string

from vcbatch.interfaces.random import KeyPair

# As Kubernetes' generated names: no vowels, no look-alikes, so that no word comes out by accident.
_ALPHABET = "".join(sorted(set(string.ascii_lowercase + string.digits) - set("aeiou013l")))


class SystemRandom:
    """`vcbatch.interfaces.Random` on the operating system's source."""

    def random(self) -> float:
        return (int.from_bytes(os.urandom(7), "big") >> 3) * 2**-53  # as many bits as a float has

    def token(self, length: int) -> str:
        import secrets  # here and below, so that a command which only waits by chance loads nothing for it

        return "".join(secrets.choice(_ALPHABET) for _ in range(length))

    def uid(self) -> str:
        import uuid

        return str(uuid.uuid4())

    async def key_pair(self) -> KeyPair:
        import asyncio

        # It takes a tenth of a second, in which everything else would stand still.
        return await asyncio.to_thread(_rsa_pair)


def _rsa_pair() -> KeyPair:
    # Imported late: few programs ever need one.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private.decode(), f"{public.decode()}\n")
