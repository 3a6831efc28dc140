"""Runtime shared by group and transaction coordinators: log, shards and timers."""
