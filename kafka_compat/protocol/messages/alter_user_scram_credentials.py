"""AlterUserScramCredentials (API key 51): set and delete SCRAM credentials (KIP-554)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class ScramCredentialDeletion:
    """A user's credential to delete. `mechanism` is 1 (SCRAM-SHA-256) or 2 (SCRAM-SHA-512)."""

    name: s.String = ""
    mechanism: s.Int8 = 0


@s.struct
class ScramCredentialUpsertion:
    """A user's credential to set. The password is sent salted and hashed, never in plain text."""

    name: s.String = ""
    mechanism: s.Int8 = 0
    iterations: s.Int32 = 0
    salt: s.Bytes = b""
    salted_password: s.Bytes = b""


@s.request(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest:
    """A user may occur only once, either in `deletions` or in `upsertions`."""

    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


@s.struct
class AlterUserScramCredentialsResult:
    user: s.String = ""
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""


@s.response(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    throttle_time_ms: s.Int32 = 0
    results: list[AlterUserScramCredentialsResult] = []
