"""CRC-32C: correct checksums, without importing an optional package."""

from __future__ import annotations

import subprocess
import sys

import crc32c as package
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_compat.storage.records import crc


def test_the_crc_matches_the_check_value_of_the_standard() -> None:
    assert crc.crc32c(b"123456789") == 0xE3069283


@given(st.binary(max_size=3000))
@settings(deadline=None)
def test_the_crc_matches_that_of_the_crc32c_package(data: bytes) -> None:
    for buffer in (data, bytearray(data), memoryview(data)):
        assert crc.crc32c(buffer) == package.crc32c(data)


def test_the_crc32c_package_is_imported_if_its_extension_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crc, "_load_extension", lambda: None)
    assert crc._find() is package.crc32c


def test_a_broker_imports_only_the_extension_of_the_crc32c_package() -> None:
    code = (
        "import sys, kafka_compat.storage.records.validation\n"
        "print('importlib.metadata' in sys.modules, 'crc32c' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
