"""The image under test, which scripts/image-test names. Without it, tests that need Docker are skipped."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose.docker import docker


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    """The name of the image. Its tag looks like a version of Confluent's image, which Testcontainers' modules
    require. The tag is removed after the tests.
    """
    built = os.environ.get("KAFKA_COMPAT_TEST_IMAGE")
    if not built:
        pytest.skip("needs Docker: run scripts/image-test")
    name = f"kafka-compat-image-test-{os.getpid()}:7.6.0"
    docker("tag", built, name)
    yield name
    docker("rmi", name)


@pytest.fixture(scope="session")
def zookeeper_image(image: str) -> str:
    """An image of ZooKeeper."""
    script = Path(__file__).parents[2] / "scripts" / "zookeeper-image"
    return subprocess.run([script], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
