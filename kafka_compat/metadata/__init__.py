"""What this broker knows of the cluster: topics, who leads them, their rules, names, nodes and settings."""
