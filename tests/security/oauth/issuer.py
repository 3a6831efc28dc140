"""A token issuer for tests: signing keys, tokens, and an HTTP server for both."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm


class SigningKey:
    """A private key with an id: RSA, or EC on the curve P-256."""

    def __init__(self, kid: str | None, algorithm: str = "RS256") -> None:
        self.kid = kid
        self.algorithm = algorithm
        self.private: Any
        if algorithm.startswith("ES"):
            self.private = ec.generate_private_key(ec.SECP256R1())
        else:
            self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def public(self) -> dict[str, Any]:
        """The public key as a JWK."""
        kind: Any = ECAlgorithm if self.algorithm.startswith("ES") else RSAAlgorithm
        found = dict(kind.to_jwk(self.private.public_key(), as_dict=True))
        found.pop("key_ops", None)
        return found | {"use": "sig"} | ({"kid": self.kid} if self.kid is not None else {})

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        """Return a signed token. `header` is added to the algorithm and the kid."""
        headers = ({"kid": self.kid} if self.kid is not None else {}) | header
        return jwt.encode(claims, self.private, self.algorithm, headers=headers)


def claims(name: str = "alice", lifetime_s: float = 3600, **others: Any) -> dict[str, Any]:
    """The claims of a valid token."""
    now_s = int(time.time())
    return {"sub": name, "iat": now_s, "exp": now_s + int(lifetime_s)} | others


def part(content: Any) -> str:
    """Encode a part of a token in base64url: bytes unchanged, other values as JSON."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def key_set(*keys: SigningKey) -> bytes:
    return json.dumps({"keys": [key.public() for key in keys]}).encode()


class Issuer:
    """Serves `/keys` and `/token` on 127.0.0.1 within `with`.

    `keys_answer` is called for each GET of the keys: (status, body), or None to send nothing until `release`.
    """

    def __init__(self, *keys: SigningKey) -> None:
        self.keys = list(keys)
        self.keys_answer: Callable[[], tuple[int, bytes] | None] = lambda: (200, key_set(*self.keys))
        self.location: str | None = None
        """Value of the Location header, if set."""
        self.keys_asked = 0
        self.token_requests: list[tuple[str, dict[str, list[str]]]] = []
        """The Authorization header and the form of each request."""
        self.lifetime_s = 3600.0
        self.other = SigningKey(self.keys[0].kid if self.keys else None)
        """A key outside the key set, with the kid of its first key."""
        self.release = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.keys_asked += 1
                answer = outer.keys_answer()
                if answer is None:
                    outer.release.wait(60)
                    return
                self._send(*answer)

            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                outer.token_requests.append((self.headers["Authorization"] or "", parse_qs(form)))
                _, _, *rest = self.path.split("/")
                name, key = rest[0] if rest else "broker", outer.keys[0] if len(rest) < 2 else outer.other
                token = key.sign(claims(name, outer.lifetime_s))
                answer = {"access_token": token, "token_type": "bearer", "expires_in": int(outer.lifetime_s)}
                self._send(200, json.dumps(answer).encode())

            def _send(self, status: int, body: bytes) -> None:
                self.send_response(status)
                if outer.location is not None:
                    self.send_header("Location", outer.location)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def keys_url(self) -> str:
        return f"{self.base}/keys"

    @property
    def token_url(self) -> str:
        return f"{self.base}/token"

    def token_url_of(self, name: str, *, forged: bool = False) -> str:
        """The token endpoint for a user. Forged tokens are signed with `other`."""
        return f"{self.token_url}/{name}{'/forged' if forged else ''}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
