"""Metrics as OpenTelemetry's collectors take them: what /metrics tells, pushed as OTLP over HTTP.

Imported only where `kafka.compat.otlp.endpoint` is set.
"""
