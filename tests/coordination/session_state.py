"""A helper that waits for the state of a metadata store session."""

from __future__ import annotations

import asyncio

from kafka_compat.coordination.store.metadata_store import (
    MetadataStore,
    SessionState,
)


async def await_state(session: MetadataStore, state: SessionState, timeout_s: float = 30) -> None:
    """Wait until the session is in this state."""
    reached = asyncio.Event()
    session.on_state(lambda now: reached.set() if now is state else None)
    if session.state is not state:
        await asyncio.wait_for(reached.wait(), timeout_s)
