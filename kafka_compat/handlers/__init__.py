"""The API handlers: one module per API, named after the API and imported at its first use.

Each declares its versions (`@handler(low, high)`, see kafka_compat/api/handler.py). Importing all of them
takes some 170 ms, so a starting broker reads the versions from `served.py`, which `python -m
kafka_compat.handlers.declared` generates from the declarations.
"""
