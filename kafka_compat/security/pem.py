"""Extract certificates and private keys from PEM text. Other text is ignored, as in Kafka. No I/O."""

import base64
import binascii
import re
from typing import Final, NamedTuple

# Accept spaces in place of line breaks, because a block in a setting may be on one line.
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_HEADER: Final = re.compile(r"\s*[A-Za-z0-9-]+:[^\r\n]*[\r\n]+")


class Block(NamedTuple):
    """A PEM block. `label` ends with CERTIFICATE or PRIVATE KEY, as in ENCRYPTED PRIVATE KEY."""

    label: str
    content: bytes
    headers: str

    @property
    def is_certificate(self) -> bool:
        return self.label in ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")

    @property
    def is_private_key(self) -> bool:
        return self.label.endswith("PRIVATE KEY")

    def text(self) -> bytes:
        """Return the block in PEM format."""
        encoded = base64.encodebytes(self.content).decode()
        headers = f"{self.headers.strip()}\n\n" if self.headers else ""
        return f"-----BEGIN {self.label}-----\n{headers}{encoded}-----END {self.label}-----\n".encode()


def blocks(text: str) -> list[Block]:
    """Return the PEM blocks in `text`, in order. Raises ValueError if a block is not base64."""
    found = []
    for label, body in _BLOCK.findall(text):
        headers = ""
        while match := _HEADER.match(body):
            headers += match[0]
            end = match.end()
            body = body[end:]
        try:
            content = base64.b64decode("".join(body.split()), validate=True)
        except binascii.Error as error:
            raise ValueError(f"a block {label} is not base64: {error}") from error
        found.append(Block(label, content, headers))
    return found


def is_pem(data: bytes) -> bool:
    """Return whether the bytes of a file contain a PEM block."""
    return b"-----BEGIN " in data
