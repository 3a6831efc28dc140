"""The UUID that means "none" in messages. It has its own module, so that others need not import uuid."""

from uuid import UUID

ZERO_UUID = UUID(int=0)
