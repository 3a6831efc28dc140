"""The broker's HTTP listener (kafka.compat.http.listener)."""
