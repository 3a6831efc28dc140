"""Push metrics to OpenTelemetry collectors: the families of /metrics as OTLP over HTTP.

Imported only if `kafka.compat.otlp.endpoint` is set.
"""
