"""AlterUserScramCredentials (API key 51): set and delete SCRAM credentials (KIP-554)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import (
    Bytes,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    request,
    response,
    struct,
)


@struct
class ScramCredentialDeletion:
    """Removes the credential of a user. mechanism: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    name: String = ""
    mechanism: Int8 = 0


@struct
class ScramCredentialUpsertion:
    """Sets the credential of a user; the password comes salted and hashed, never in clear."""

    name: String = ""
    mechanism: Int8 = 0
    iterations: Int32 = 0
    salt: Bytes = b""
    salted_password: Bytes = b""


@request(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest:
    """A user may be named once only, over both lists."""

    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


@struct
class AlterUserScramCredentialsResult:
    """What became of one user."""

    user: String = ""
    error_code: Int16 = 0
    error_message: NullableString = ""


@response(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    """One result per user."""

    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult] = []
