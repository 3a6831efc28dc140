"""DescribeUserScramCredentials (API key 50): which SCRAM mechanisms users have (KIP-554)."""

from kafka_compat.protocol.api_keys import ApiKey
from kafka_compat.protocol.schema import Int8, Int16, Int32, NullableString, String, request, response, struct


@struct
class UserName:
    """A user."""

    name: String = ""


@request(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    """Null or no users asks for all."""

    users: list[UserName] | None = []


@struct
class CredentialInfo:
    """mechanism: 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    mechanism: Int8 = 0
    iterations: Int32 = 0


@struct
class DescribeUserScramCredentialsResult:
    """The credentials of one user, without their secrets."""

    user: String = ""
    error_code: Int16 = 0
    error_message: NullableString = ""
    credential_infos: list[CredentialInfo] = []


@response(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    """`error_code` concerns the whole request; users have their own."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = ""
    results: list[DescribeUserScramCredentialsResult] = []
