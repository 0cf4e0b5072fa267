"""The randomness interface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An RSA key pair: the private key as PKCS#1 PEM, the public key as a line in OpenSSH format."""

    private: str
    public: str


class Random(Protocol):
    """Randomness: jitter of retries, generated names, identifiers."""

    def random(self) -> float:
        """A float in [0, 1)."""
        ...

    def token(self, length: int) -> str:
        """A lower-case alphanumeric string that can't be guessed."""
        ...

    def uid(self) -> str:
        """A new object UID (RFC 4122 text form)."""
        ...

    async def key_pair(self) -> KeyPair:
        """A new RSA key pair of 2048 bits, for ssh logins."""
        ...
