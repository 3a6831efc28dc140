"""The request handlers: one module for each API, named after the API and imported when the API is first used.

Each handler declares its versions (`@handler(low, high)`, see kafka_compat/api/handler.py). Importing all
handlers takes about 170 ms. At startup, a broker therefore reads the versions from `served.py`, which `python
-m kafka_compat.handlers.declared` generates from the declarations.
"""
