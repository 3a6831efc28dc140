"""The APIs: one module per API, named as the API, imported when it is first asked for.

Each declares its versions itself (`@handler(low, high)`, see kafka_compat/api/handler.py).
Importing all of them takes some 170 ms, so a broker that starts reads them from `served.py`, which
`python -m kafka_compat.handlers.declared` writes from the declarations.
"""
