"""The state of a cluster and its problems, for `kafka-compat status`: observed, judged, and drawn apart."""
