"""What coordinators of groups and of transactions share: their log, its shards, timers."""
