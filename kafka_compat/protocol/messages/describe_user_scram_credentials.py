"""DescribeUserScramCredentials (API key 50): the SCRAM mechanisms of users (KIP-554)."""

from kafka_compat.protocol import schema as s
from kafka_compat.protocol.api_keys import ApiKey


@s.struct
class UserName:
    name: s.String = ""


@s.request(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    """A null or empty list requests all users."""

    users: list[UserName] | None = []


@s.struct
class CredentialInfo:
    """One credential. mechanism: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    mechanism: s.Int8 = 0
    iterations: s.Int32 = 0


@s.struct
class DescribeUserScramCredentialsResult:
    """The credentials of one user, without their secrets."""

    user: s.String = ""
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    credential_infos: list[CredentialInfo] = []


@s.response(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    """`error_code` applies to the whole request. Each user also has an error code."""

    throttle_time_ms: s.Int32 = 0
    error_code: s.Int16 = 0
    error_message: s.NullableString = ""
    results: list[DescribeUserScramCredentialsResult] = []
