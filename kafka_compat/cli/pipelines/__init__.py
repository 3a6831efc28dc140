"""The jobs of `kafka-compat pipeline`.

Each module has HELP, DESCRIPTION, EPILOG, `add_arguments(parser)` and `run_job(args) -> report`.
"""
