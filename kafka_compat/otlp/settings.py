"""The kafka.compat.otlp.* settings, which configure the push of metrics."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from kafka_compat.config import BrokerConfig
from kafka_compat.errors import StartupError
from kafka_compat.http_client import Place, place
from kafka_compat.telemetry.pushed import has_otlp

ENDPOINT: Final = "kafka.compat.otlp.endpoint"
HEADERS: Final = "kafka.compat.otlp.headers"
INTERVAL_MS: Final = "kafka.compat.otlp.interval.ms"
_PATH: Final = "/v1/metrics"
"""Default path for metrics in collectors."""
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_EXPECTED: Final = "expected an address such as http://127.0.0.1:4318/v1/metrics"


class OtlpSettings(NamedTuple):
    """Settings of OTLP pushes. `shown` is the URL without its query, which may contain a secret."""

    where: Place
    shown: str
    headers: Mapping[str, str]
    interval_ms: int


def otlp_settings(config: BrokerConfig) -> OtlpSettings:
    """Return the OTLP settings of a broker that has an endpoint. Raises StartupError if they are invalid."""
    endpoint = config.str(ENDPOINT) or ""
    if not has_otlp():
        raise StartupError(
            f"{ENDPOINT}={_without_query(endpoint)} requires more packages: pip install 'kafka-compat[otel]'"
        )
    try:
        parts = urlsplit(endpoint)
        if "@" in parts.netloc:
            raise ValueError(f"put the user and password into {HEADERS}")
        if not parts.path or parts.path == "/":
            endpoint = urlunsplit(parts._replace(path=_PATH))
        where = place(endpoint)
    except ValueError as error:
        # Hide the original exception, because its text may contain a password.
        raise StartupError(f"{ENDPOINT}: {error}; {_EXPECTED}") from None
    return OtlpSettings(where, _without_query(endpoint), _headers(config), config.int(INTERVAL_MS))


def _without_query(url: str) -> str:
    return url.partition("?")[0].partition("#")[0]


def _headers(config: BrokerConfig) -> dict[str, str]:
    """Parse the format of OTEL_EXPORTER_OTLP_HEADERS: name=value,name=value, with percent-encoded values."""
    found: dict[str, str] = {}
    for item in (config.str(HEADERS) or "").split(","):
        name, equals, value = item.partition("=")
        name, value = name.strip(), unquote(value.strip())
        if not (name or equals or value):
            continue
        if not (equals and _NAME.fullmatch(name)):
            raise StartupError(
                f"{HEADERS}: expected name=value, separated by commas, such as Authorization=Bearer%20abc"
            )
        if not (value.isascii() and value.isprintable()):
            raise StartupError(f"{HEADERS}: the value of {name} contains characters invalid in headers")
        found[name] = value
    return found
