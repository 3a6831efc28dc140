"""The benchmark of scripts/bench: this broker and Apache Kafka in alternating runs, reported as ratios."""
