"""State and problems of a cluster, for `kafka-compat status`: observing, judging and drawing are separate."""
