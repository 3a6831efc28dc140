"""OpenID Connect issuer for tests of OAUTHBEARER: an HTTP server on 127.0.0.1 in a thread of this process.

It serves the discovery document, the public keys (JWKS), and a token endpoint with client credentials.
`TokenIssuer.token` creates tokens with any claims, and tokens that brokers must reject.
"""

import base64
import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, unquote_plus

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

_HOST: Final = "127.0.0.1"
_ALGORITHM: Final = "ES256"
_KEY_ID: Final = "kafka-compat-testing"
_DISCOVERY: Final = "/.well-known/openid-configuration"
_KEYS: Final = "/keys"
_TOKEN: Final = "/token"
_BODY_BYTES_MAX: Final = 65536
_POLL_S: Final = 0.05

AUDIENCE: Final = "kafka"
"""The audience (`aud`) of the tokens, which the broker requires."""
LIFETIME_S: Final = 3600
SCOPE: Final = "kafka"


class TokenIssuer:
    """Issues tokens. Clients of the token endpoint authenticate with a user's name and password."""

    def __init__(self, users: Mapping[str, str]) -> None:
        """Serve on a free port until `close` is called. `users` maps client IDs to client secrets."""
        self._users = dict(users)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._foreign_key = ec.generate_private_key(ec.SECP256R1())
        self._fixed: list[str] = []
        self._server = ThreadingHTTPServer((_HOST, 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="token issuer", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The issuer's address, which is the claim `iss` of its tokens."""
        return f"http://{_HOST}:{self._server.server_address[1]}"

    @property
    def discovery_url(self) -> str:
        """The address of the OpenID Connect discovery document."""
        return self.url + _DISCOVERY

    @property
    def keys_url(self) -> str:
        """The URL of the public keys (JWKS)."""
        return self.url + _KEYS

    @property
    def token_url(self) -> str:
        """The address of the token endpoint, for the grant client_credentials."""
        return self.url + _TOKEN

    @property
    def java_option(self) -> str:
        """The JVM option that lets Kafka 4 clients request tokens from the issuer's URLs."""
        urls = [self.token_url, *(self._fixed_url(number) for number in range(len(self._fixed)))]
        return f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(urls)}"

    def token(
        self,
        user: str,
        *,
        lifetime_s: float = LIFETIME_S,
        expired: bool = False,
        forged: bool = False,
        claims: Mapping[str, Any] | None = None,
    ) -> str:
        """Return a signed token (JWT) for a user. An expired token was valid until a minute ago. A forged
        token has a signature with a different key. `claims` adds and replaces claims; None removes a claim.
        """
        now_s = int(time.time())
        issued_s = now_s - 120 if expired else now_s
        found: dict[str, Any] = {
            "iss": self.url,
            "sub": user,
            "aud": AUDIENCE,
            "scope": SCOPE,
            "iat": issued_s,
            "exp": now_s - 60 if expired else now_s + int(lifetime_s),
            **(claims or {}),
        }
        payload = {name: value for name, value in found.items() if value is not None}
        key = self._foreign_key if forged else self._key
        return jwt.encode(payload, key, _ALGORITHM, headers={"kid": _KEY_ID})

    def endpoint_for(self, token: str) -> str:
        """Return the address of a token endpoint that returns this token to every client."""
        if token not in self._fixed:
            self._fixed.append(token)
        return self._fixed_url(self._fixed.index(token))

    def _fixed_url(self, number: int) -> str:
        return f"{self.token_url}/{number}"

    def discovery(self) -> dict[str, Any]:
        """Return the discovery document (OpenID Connect Discovery 1.0)."""
        return {
            "issuer": self.url,
            "jwks_uri": self.keys_url,
            "token_endpoint": self.token_url,
            "grant_types_supported": ["client_credentials"],
            "response_types_supported": ["token"],
            "scopes_supported": [SCOPE],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [_ALGORITHM],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }

    def keys(self) -> dict[str, Any]:
        """Return the public keys (RFC 7517)."""
        key = dict(ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True))
        return {"keys": [key | {"kid": _KEY_ID, "use": "sig", "alg": _ALGORITHM}]}

    def response_to_get(self, path: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the response to a GET request."""
        found = {_DISCOVERY: self.discovery, _KEYS: self.keys}.get(path)
        return (200, found()) if found is not None else (404, {"error": "not_found"})

    def response_to_post(
        self, path: str, form: Mapping[str, list[str]], authorization: str
    ) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the response to a token request (RFC 6749, 4.4 and 5.2)."""
        fixed = {self._fixed_url(number): token for number, token in enumerate(self._fixed)}
        token = fixed.get(self.url + path)
        if token is None and path != _TOKEN:
            return 404, {"error": "not_found"}
        if form.get("grant_type") != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        if token is None:
            user, password = _credentials(form, authorization)
            if user not in self._users or self._users[user] != password:
                reason = "unknown client ID, or wrong client secret"
                return 401, {"error": "invalid_client", "error_description": reason}
            token = self.token(user)
        return 200, {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": LIFETIME_S,
            "scope": SCOPE,
        }


def _credentials(form: Mapping[str, list[str]], authorization: str) -> tuple[str, str]:
    """Return the client ID and the secret of a request, from its Authorization header or its form."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(encoded).decode().partition(":")
        except ValueError:
            return "", ""
        return unquote_plus(user), unquote_plus(password)
    return form.get("client_id", [""])[0], form.get("client_secret", [""])[0]


def _handler(issuer: TokenIssuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(*issuer.response_to_get(self.path))

        def do_POST(self) -> None:
            length = min(int(self.headers.get("Content-Length") or 0), _BODY_BYTES_MAX)
            form = parse_qs(self.rfile.read(length).decode(errors="replace"))
            self._send(*issuer.response_to_post(self.path, form, self.headers.get("Authorization") or ""))

        def _send(self, status: int, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
