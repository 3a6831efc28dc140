"""Entry point of `python -m kafka_compat`, equivalent to `kafka-compat`."""

import sys

from kafka_compat.cli import main

if __name__ == "__main__":
    sys.exit(main())
