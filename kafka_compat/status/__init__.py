"""State and problems of a cluster, for `kafka-compat status`, in separate steps: observe, evaluate, draw."""
