"""scripts/bench: this broker and genuine Kafka side by side, reported as ratios."""
