"""Jinja2 is imported only if the web console is enabled."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_compat.testing import KafkaBroker
from tests.page.site import PAGE, Site
from tests.support.process import wait_until


def is_imported(broker: KafkaBroker) -> bool:
    """Return whether the broker has imported Jinja2, which loads an extension module."""
    return "markupsafe" in Path(f"/proc/{broker.pid}/maps").read_text()


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
def test_jinja_is_imported_only_for_the_web_console() -> None:
    with KafkaBroker() as broker:
        assert Site.of(broker).ask("GET", "/live").status == 200
        assert not is_imported(broker)
        assert Site.of(broker).ask("GET", "/ui/topics").status == 404
    with KafkaBroker(PAGE) as broker:
        wait_until(lambda: is_imported(broker), 30, "the import of Jinja2")
