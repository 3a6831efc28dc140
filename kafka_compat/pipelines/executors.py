"""Code that Spark's executors run, although they do not have this package."""

import sys
from typing import Final

_PACKAGES: Final = ("kafka_compat.decoding", "kafka_compat.http_client", "kafka_compat.pipelines")


def send_code_to_executors() -> None:
    """Make Spark send this package's functions with each task."""
    from pyspark import cloudpickle

    for name in _PACKAGES:
        # Functions can only refer to packages that are loaded.
        if name in sys.modules:
            cloudpickle.register_pickle_by_value(sys.modules[name])
