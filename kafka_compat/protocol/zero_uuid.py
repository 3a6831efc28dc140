"""The UUID that means "none" in messages: a module of its own, because many messages do without uuid."""

from uuid import UUID

ZERO_UUID = UUID(int=0)
