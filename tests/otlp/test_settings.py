"""Invalid settings of OTLP pushes are reported at startup, without secrets."""

from __future__ import annotations

import pytest

from kafka_compat.config import BrokerConfig
from kafka_compat.errors import StartupError
from kafka_compat.otlp import settings
from kafka_compat.otlp.settings import otlp_settings


def _of(endpoint: str, headers: str = "") -> BrokerConfig:
    return BrokerConfig.from_properties({settings.ENDPOINT: endpoint, settings.HEADERS: headers})


@pytest.mark.parametrize(
    "given, url, shown",
    [
        ("http://127.0.0.1:4318/v1/metrics", "http://127.0.0.1:4318/v1/metrics", None),
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics", None),
        ("https://[::1]/", "https://[::1]/v1/metrics", None),
        ("https://h/otlp?key=secret", "https://h/otlp?key=secret", "https://h/otlp"),
    ],
)
def test_the_endpoint_is_expanded_to_a_full_url(given: str, url: str, shown: str | None) -> None:
    found = otlp_settings(_of(given))
    assert (found.where.url, found.shown) == (url, shown or url)
    assert (found.where.tls is not None) == url.startswith("https")
    assert found.interval_ms == 60_000


@pytest.mark.parametrize(
    "given", ["127.0.0.1:4318", "grpc://h:4317", "http://", "http://h:99999", "http://a b/"]
)
def test_invalid_endpoints_are_rejected(given: str) -> None:
    with pytest.raises(
        StartupError, match=r"kafka\.compat\.otlp\.endpoint: .*expected an address such as http:"
    ):
        otlp_settings(_of(given))


def test_passwords_in_the_endpoint_are_not_shown_in_errors() -> None:
    with pytest.raises(StartupError, match=r"into kafka\.compat\.otlp\.headers") as raised:
        otlp_settings(_of("http://user:hunter2@h:4318"))
    assert "hunter2" not in str(raised.value)


def test_headers_are_decoded() -> None:
    found = otlp_settings(_of("http://h", " Authorization=Basic%20YTpi=,, X-Key = a%2Cb ,"))
    assert found.headers == {"Authorization": "Basic YTpi=", "X-Key": "a,b"}


@pytest.mark.parametrize(
    "given", ["secret", "=secret", "na me=secret", "a:b=secret", "a=secret%0d%0aX: y", "a=secrét"]
)
def test_invalid_headers_are_rejected(given: str) -> None:
    with pytest.raises(StartupError, match=r"kafka\.compat\.otlp\.headers: ") as raised:
        otlp_settings(_of("http://h", given))
    assert "secr" not in str(raised.value)


def test_a_missing_otlp_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "has_otlp", lambda: False)
    with pytest.raises(StartupError) as raised:
        otlp_settings(_of("http://h/x?key=secret"))
    told = "kafka.compat.otlp.endpoint=http://h/x requires more packages: pip install 'kafka-compat[otel]'"
    assert str(raised.value) == told
