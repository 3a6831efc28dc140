"""Data pipelines on Spark: one module per job, and a thin runner shared by all jobs.

The `spark` extra installs pyspark and pyarrow. They are imported only when a job runs, so that the command
line starts fast and can report missing packages.
"""
