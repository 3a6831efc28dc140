"""Whether the compiled build of the broker is under test."""

from __future__ import annotations

from kafka_compat.storage.log import log as log_module

COMPILED = not str(log_module.__file__).endswith(".py")
