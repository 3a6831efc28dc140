"""The API handlers: one module per API, named after the API and imported at its first use.

Each declares its versions (`@handler(low, high)`, see kafka_compat/api/handler.py). Importing all handlers
takes about 170 ms, so at startup a broker reads the versions from `served.py`, which `python -m
kafka_compat.handlers.declared` generates from the declarations.
"""
