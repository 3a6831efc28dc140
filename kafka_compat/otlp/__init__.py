"""Push metrics to OpenTelemetry collectors: the families of /metrics as OTLP over HTTP.

This package is imported only if `kafka.compat.otlp.endpoint` is set.
"""
