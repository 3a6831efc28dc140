"""A Celery application whose only task notes its number in a file. `send FIRST END` sends tasks.

The environment has the address of the broker and the path of the file.
"""

from __future__ import annotations

import os
import sys

from celery import Celery

application = Celery("work", broker=f"confluentkafka://{os.environ['ADDRESS']}")
application.conf.broker_connection_retry_on_startup = True


@application.task(name="note", acks_late=True)
def note(number: int) -> None:
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(f"{number}\n")


if __name__ == "__main__":
    for number in range(int(sys.argv[2]), int(sys.argv[3])):
        note.delay(number)
