"""Data pipelines on Spark: one module per job, and a thin runner that all jobs share.

pyspark and pyarrow come with the extra `spark`; nothing here imports them before a job runs, so that the
command line stays quick and can say what is missing.
"""
