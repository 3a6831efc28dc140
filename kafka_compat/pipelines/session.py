"""Create a job's SparkSession with little log output, time zone UTC, and Spark's Kafka connector.

Spark's JVM writes to a file that is kept only after a failure (see spark_output), or to stderr with
`verbose`.
"""

import atexit
import contextlib
import os
import sys
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_compat.pipelines import spark_output
from kafka_compat.pipelines.environment import (
    jars_in,
    java_command,
    require_connector,
    require_spark,
    spark_release,
)
from kafka_compat.pipelines.errors import NotStarted

_LOG4J = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n
"""

_LOCAL = {"spark.sql.shuffle.partitions": str(os.cpu_count() or 1)}
"""Settings for a local Spark. Spark's default of 200 shuffle partitions adds seconds to each small batch."""


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Settings of a job's Spark session. `jars` is a directory with the connector's four jars, or None to let
    Spark download them by their Maven coordinates. With `iceberg`, Iceberg's jar is one of them.
    """

    master: str = "local[*]"
    jars: Path | None = None
    driver_memory: str = "1g"
    verbose: bool = False
    iceberg: bool = False


LOCAL_SPARK = SparkSettings()


def create_session(
    name: str, spark: SparkSettings, *, settings: Mapping[str, str] | None = None, connector: bool = True
) -> Any:
    """Start Spark, or reuse the session of this process or of spark-submit.

    A reused session keeps its own master, memory and jars. `settings` contains Spark settings that override
    this function's defaults. A job without the Kafka connector requires no jars. Raises NotStarted if Spark
    does not start.
    """
    require_spark()
    java_command()
    # Spark 4.2 warns about pandas 3 when it is imported. The jobs use Arrow, not pandas.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if submitted and connector:
        SparkContext._ensure_initialized()
        given = SparkConf().get("spark.jars", "").split(",")
        require_connector(spark_release(), [name.rpartition("/")[2] for name in given], "spark.jars")
    if spark.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.NamedTemporaryFile("w", suffix=".properties", prefix="log4j2-") as log4j:
        log4j.write(_LOG4J.format(level="warn" if spark.verbose else "error"))
        log4j.flush()
        own = {
            "spark.master": spark.master,
            "spark.driver.memory": spark.driver_memory,
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{log4j.name}",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            **(_connector_settings(spark) if connector else {}),
            **(_LOCAL if spark.master.startswith("local[") or spark.master == "local" else {}),
        }
        defaults = {
            **({} if submitted else own),
            "spark.sql.session.timeZone": "UTC",
            # Limit the rows per batch, to limit memory use. A limit in bytes would cost 13 µs per record.
            "spark.sql.execution.arrow.maxRecordsPerBatch": "256",
        }
        chosen = {"spark.app.name": name, **defaults, **(settings or {})}
        is_first = not submitted and SparkContext._gateway is None
        try:
            if is_first:
                leftover = Path("artifacts").absolute()
                if not leftover.exists():
                    atexit.register(remove_empty, leftover)
                job = name.removeprefix("kafka-compat ")
                print(f"{job}: starting Spark {spark_release().version}", file=sys.stderr, flush=True)
                conf = SparkConf(loadDefaults=False).setAll(list(chosen.items()))
                gateway = launch_gateway(conf, spark_output.redirection(verbose=spark.verbose))
                SparkContext(conf=conf, gateway=gateway)
            builder = SparkSession.builder
            for key, value in chosen.items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
        except Exception as error:
            reason = spark_output.reason() or str(error).strip().splitlines()[-1]
            hint = "Where its jars cannot be fetched: kafka-compat spark jars DIR, then --jars DIR."
            hint = hint if connector and spark.jars is None else ""
            raise NotStarted(
                f"Spark did not start: {reason}", hint + spark_output.kept(whatever_it_says=True)
            ) from error
        # Set the log level again, because Spark's shells, including pyspark, override the level in the file.
        quiet = "ERROR" if is_first else "FATAL"
        session.sparkContext.setLogLevel("WARN" if spark.verbose else quiet)
        return session


def remove_empty(folder: Path) -> None:
    """Remove Spark's directory for users' files from the working directory, if it is empty."""
    with contextlib.suppress(OSError):
        for part in (*folder.iterdir(), folder):
            part.rmdir()


def _connector_settings(spark: SparkSettings) -> dict[str, str]:
    if spark.jars is None:
        release = spark_release()
        wanted = [release.connector, *([release.iceberg] if spark.iceberg else [])]
        return {"spark.jars.packages": ",".join(wanted)}
    jars = jars_in(spark.jars, iceberg=spark.iceberg)
    return {"spark.jars": ",".join(str(path.resolve()) for path in jars)}
