"""Selection of the quota for a client: the most specific one, in Kafka's order (KIP-55). No I/O.

    1. /config/users/<user>/clients/<client-id>        5. /config/users/<default>/clients/<default>
    2. /config/users/<user>/clients/<default>          6. /config/users/<default>
    3. /config/users/<user>                            7. /config/clients/<client-id>
    4. /config/users/<default>/clients/<client-id>     8. /config/clients/<default>

Quotas 3 and 6 are shared by all clients of a user, 7 and 8 by all users of a client id; the others apply to
one client id of one user.
"""

from __future__ import annotations

from collections.abc import Iterator

ANY = ""
"""In an entity: any user, or any client id. Stored entities contain no empty names."""

Name = str | None
"""None is Kafka's <default>, which applies to names without a quota of their own."""

Owner = tuple[str, str]
"""The clients that share a rate: user and client id, or ANY."""


class Quotas:
    """The stored quotas of one kind, as rates by entity (user, client id)."""

    def __init__(self) -> None:
        self._rates: dict[tuple[Name, Name], float] = {}

    def __bool__(self) -> bool:
        return bool(self._rates)

    def __iter__(self) -> Iterator[tuple[Name, Name]]:
        return iter(self._rates)

    def put(self, user: Name, client_id: Name, rate: float | None) -> None:
        """Set the quota of an entity; None removes it."""
        if rate is None:
            self._rates.pop((user, client_id), None)
        else:
            self._rates[user, client_id] = rate

    def owner(self, user: str, client_id: str) -> Owner:
        """The entity whose rate a client shares."""
        rates = self._rates
        if (user, client_id) in rates or (user, None) in rates:
            return user, client_id
        if (user, ANY) in rates:
            return user, ANY
        if (None, client_id) in rates or (None, None) in rates:
            return user, client_id
        if (None, ANY) in rates:
            return user, ANY
        return ANY, client_id

    def rate(self, owner: Owner) -> float | None:
        """The limit of an entity; None if it has none."""
        user, client_id = owner
        rates = self._rates
        candidates: tuple[tuple[Name, Name], ...]
        if user and client_id:
            candidates = ((user, client_id), (user, None), (None, client_id), (None, None))
        elif user:
            candidates = ((user, ANY), (None, ANY))
        elif client_id:
            candidates = ((ANY, client_id), (ANY, None))
        else:
            # As in Kafka, a client without an id has no client quota.
            return None
        for entity in candidates:
            rate = rates.get(entity)
            if rate is not None:
                return rate
        return None
