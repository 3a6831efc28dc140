"""Keep only the latest record of each key, from records that are read newest first. No I/O."""

from kafka_compat.search.scan import Found


class LatestPerKey:
    """A filter of a search that is newest first. It accepts the first record of each key, after the first
    `skip` keys. Records without a key are rejected. As in compaction, each partition has its own keys.
    """

    def __init__(self, skip: int = 0) -> None:
        self._skip = skip
        self._seen: set[int] = set()

    @property
    def keys(self) -> int:
        """The number of different keys so far."""
        return len(self._seen)

    def __call__(self, found: Found) -> bool:
        """Return whether the record is the latest of its key and is not skipped."""
        if found.key is None:
            return False
        # Hashes take less memory than keys. Two of 250,000 keys have the same hash once in 100 million scans.
        seen = hash((found.partition, found.key_hash, found.key_bytes))
        if seen in self._seen:
            return False
        self._seen.add(seen)
        return len(self._seen) > self._skip
