"""Handlers of the APIs that controller listeners serve, one module per API.

Modules of APIs that broker listeners serve in the same way contain the same handler.
"""
