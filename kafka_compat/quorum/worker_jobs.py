"""Jobs of the metadata directory's worker thread, awaited on the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafka_compat.storage.directories.directory_worker import Job, Worker


async def in_worker(worker: Worker, job: Job) -> None:
    """Run a job in the worker thread, and wait for its end. Raises the job's error. If the caller is
    canceled, the job nevertheless runs.
    """
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ended(error: Exception | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    worker.submit(job, ended)
    await done
