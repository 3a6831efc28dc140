"""Select the quota for a client: the most specific one, in Kafka's order (KIP-55). No I/O.

    1. /config/users/<user>/clients/<client-id>        5. /config/users/<default>/clients/<default>
    2. /config/users/<user>/clients/<default>          6. /config/users/<default>
    3. /config/users/<user>                            7. /config/clients/<client-id>
    4. /config/users/<default>/clients/<client-id>     8. /config/clients/<default>

All clients of a user share quotas 3 and 6, and all users of a client ID share quotas 7 and 8. The other
quotas apply to one client ID of one user.
"""

from collections.abc import Iterator

ANY = ""
"""Stands for any user, or any client ID, in an entity. Stored entities contain no empty names."""

Name = str | None
"""None stands for Kafka's <default>, which applies to names without a quota of their own."""

Owner = tuple[str, str]
"""The clients that share a rate: a user and a client ID, either of which may be ANY."""


class Quotas:
    """The stored quotas of one kind: the rate of each entity (user, client ID)."""

    def __init__(self) -> None:
        self._rates: dict[tuple[Name, Name], float] = {}

    def __bool__(self) -> bool:
        return bool(self._rates)

    def __iter__(self) -> Iterator[tuple[Name, Name]]:
        return iter(self._rates)

    def put(self, user: Name, client_id: Name, rate: float | None) -> None:
        """Set the quota of an entity. A rate of None removes it."""
        if rate is None:
            self._rates.pop((user, client_id), None)
        else:
            self._rates[user, client_id] = rate

    def owner(self, user: str, client_id: str) -> Owner:
        """Return the owner of the quota for a client. All clients of an owner share one rate."""
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
        """Return the limit for an owner, or None if no quota applies."""
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
            # As in Kafka, a client without a client ID has no client quota.
            return None
        for entity in candidates:
            rate = rates.get(entity)
            if rate is not None:
                return rate
        return None
