"""Data pipelines on Spark: one module per job, and a thin runner shared by all jobs.

pyspark and pyarrow come with the extra `spark`. They are imported only when a job runs, so that the command
line starts fast and can report what is missing.
"""
