"""A SCRAM credential derived from a password (RFC 5802), in Kafka's storage format."""

import base64
import hashlib
import hmac
from typing import Final, NamedTuple

MECHANISMS: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Maps each mechanism to its hash function."""
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384


class Credential(NamedTuple):
    """StoredKey and ServerKey of RFC 5802. The password cannot be derived from them, only guessed."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        """Omit the keys, because the text may be logged."""
        return f"Credential(iterations={self.iterations})"


def from_salted(salted_password: bytes, salt: bytes, iterations: int, mechanism: str) -> Credential:
    """Return the credential for a salted password."""
    digest = MECHANISMS[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    server_key = hmac.digest(salted_password, b"Server Key", digest)
    return Credential(salt, hashlib.new(digest, client_key).digest(), server_key, iterations)


def from_password(password: str, salt: bytes, iterations: int, mechanism: str) -> Credential:
    """Return the credential for a password. This takes a few ms."""
    salted = hashlib.pbkdf2_hmac(MECHANISMS[mechanism], password.encode(), salt, iterations)
    return from_salted(salted, salt, iterations, mechanism)


def encode(credential: Credential) -> str:
    """Encode a credential for storage under /config/users."""
    parts = {
        "salt": credential.salt,
        "stored_key": credential.stored_key,
        "server_key": credential.server_key,
    }
    encoded = [f"{name}={base64.b64encode(value).decode()}" for name, value in parts.items()]
    return ",".join([*encoded, f"iterations={credential.iterations}"])


def decode(text: str) -> Credential:
    """Decode a credential stored under /config/users. Raises ValueError if it is invalid."""
    parts = dict(part.strip().split("=", 1) for part in text.split(","))
    try:
        salt, stored_key, server_key = (
            base64.b64decode(parts[name], validate=True) for name in ("salt", "stored_key", "server_key")
        )
        return Credential(salt, stored_key, server_key, int(parts["iterations"]))
    except KeyError as error:
        raise ValueError(f"the SCRAM credential has no {error.args[0]}") from None
