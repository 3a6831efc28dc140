"""Delegation tokens in the metadata store: Kafka 3.9's nodes, their paths and payloads.

/delegation_token/tokens/ID                             one token, as JSON; its secret is nowhere
/delegation_token/token_changes/token_change_0000000007 a notice: the token of that id is another, or gone
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote

from kafka_compat.coordination.nodes import znodes
from kafka_compat.coordination.nodes.entity_names import node_name
from kafka_compat.coordination.nodes.malformed_nodes import MalformedNode
from kafka_compat.coordination.nodes.node_json import INT64_MAX, NodeObject, encode_json
from kafka_compat.security.principal import Principal
from kafka_compat.security.tokens.delegation_token import Token

TOKENS: Final = "/delegation_token/tokens"
CHANGES: Final = "/delegation_token/token_changes"
CHANGE_PREFIX: Final = "token_change_"
PERSISTENT_PATHS: Final = (CHANGES, TOKENS)
"""What Kafka makes at the start of a broker with a secret key."""

_VERSION: Final = 3
_INT64_MIN: Final = -INT64_MAX - 1


def path_of(token_id: str) -> str:
    """The token's node."""
    return f"{TOKENS}/{token_id}"


def encode_token(token: Token) -> bytes:
    """The payload of `path_of`, version 3, in the order that Kafka happens to have."""
    return encode_json(
        {
            "issueTimestamp": token.issued_ms,
            "renewers": [node_name(str(renewer)) for renewer in token.renewers],
            "tokenRequester": node_name(str(token.requester)),
            "tokenId": token.token_id,
            "owner": node_name(str(token.owner)),
            "expiryTimestamp": token.expires_ms,
            "maxTimestamp": token.max_ms,
            "version": _VERSION,
        }
    )


def decode_token(token_id: str, data: bytes | None) -> Token:
    """The token of that id, versions 1 to 3: before 3 its owner requested it. MalformedNode."""
    values = NodeObject.parse(path_of(token_id), data)
    version = values.integer("version", low=1, high=_VERSION)
    if values.text("tokenId") != token_id:
        raise values.wrong("tokenId", "is another than the node's name")
    owner = _principal(values, "owner", values.text("owner"))
    requester = owner
    if version >= _VERSION:
        requester = _principal(values, "tokenRequester", values.text("tokenRequester"))
    return Token(
        token_id,
        owner,
        requester,
        tuple(_principal(values, "renewers", text) for text in values.texts("renewers")),
        _time_ms(values, "issueTimestamp"),
        _time_ms(values, "maxTimestamp"),
        _time_ms(values, "expiryTimestamp"),
    )


def _principal(values: NodeObject, field: str, text: str) -> Principal:
    kind, colon, name = unquote(text).partition(":")
    if not colon:
        raise values.wrong(field, f"holds {text!r:.80}, which is not TYPE:NAME")
    return Principal(kind, name)


def _time_ms(values: NodeObject, field: str) -> int:
    """Below 0 where a genuine broker was asked for more time than its numbers can hold."""
    return values.integer(field, low=_INT64_MIN, high=INT64_MAX)


def encode_change(token_id: str) -> bytes:
    """The payload of a notice."""
    return token_id.encode()


def decode_change(path: str, data: bytes | None) -> str:
    """The id of the token that a notice is about. MalformedNode."""
    token_id = (data or b"").decode(errors="replace")
    if not znodes.is_name(token_id):
        raise MalformedNode(path, f"{token_id!r:.80} is no id of a token")
    return token_id
