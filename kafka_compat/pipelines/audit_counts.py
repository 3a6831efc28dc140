"""Record counts per audit bucket, and the differences between the counts of two tiers."""

from collections.abc import Mapping
from dataclasses import dataclass

Bucket = tuple[int, int]
"""(partition, start of the bucket in milliseconds since 1970)."""


@dataclass(frozen=True, slots=True)
class Count:
    """The number of records in a bucket. `checksum` is None if only the number is known."""

    rows: int
    checksum: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A bucket in which a tier's records differ from the first tier's: lost, duplicated or changed."""

    tier: str
    partition: int
    bucket_ms: int
    expected: int
    found: int
    verdict: str


def differences_between(
    reference: Mapping[Bucket, Count], tier: str, counts: Mapping[Bucket, Count]
) -> list[Difference]:
    """Return the buckets in which `counts` differs from `reference`, ordered by time."""
    nothing = Count(0, 0)
    found = []
    for bucket in sorted({*reference, *counts}, key=lambda b: (b[1], b[0])):
        expected, actual = reference.get(bucket, nothing), counts.get(bucket, nothing)
        if actual.rows != expected.rows:
            verdict = "lost" if actual.rows < expected.rows else "duplicated"
        elif None not in (actual.checksum, expected.checksum) and actual.checksum != expected.checksum:
            verdict = "changed"
        else:
            continue
        found.append(Difference(tier, bucket[0], bucket[1], expected.rows, actual.rows, verdict))
    return found
