"""Build the one Spark session of a process: local, quiet, and reachable by nobody.

Payloads stay opaque bytes inside Spark, the UI and every port but loopback are off, and the Python
of the executors is the Python of the driver.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.base.on_disk import scratch_folder
from penstock.base.settings import Settings


def open_session(settings: Settings, *, name: str) -> SparkSession:
    """The session of this process; the first call starts it and takes a few seconds."""
    # Before the JVM starts: executors must run this very interpreter.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    scratch = scratch_folder(settings.data_dir.resolve() / "spark", "driver")
    builder = SparkSession.builder.appName(name)
    for key, value in _config(settings, scratch).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _config(settings: Settings, scratch: Path) -> dict[str, str]:
    config = {
        "spark.master": f"local[{settings.ingress_concurrency}]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": settings.spark_memory,
        # The JVM plans and hands out; Python does the work. One quick compiler leaves it the cores.
        # A query that is stopped within a batch reads our traceback by a regex that calls itself
        # for every letter: with a small stack it would end in a thousand lines of its own.
        "spark.driver.extraJavaOptions": (
            f"-Djava.io.tmpdir={scratch} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss32m"
        ),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(settings.ingress_concurrency),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.files.openCostInBytes": "65536",
        # Several small shares for each core: whoever is done takes another, and none waits long.
        "spark.sql.files.minPartitionNum": str(6 * settings.ingress_concurrency),
        # A segment that was settled and deleted may still be named in a plan.
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.streaming.pollingDelay": f"{max(10, settings.ingress_interval_ms)}ms",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.minBatchesToRetain": "2",
        "spark.sql.streaming.stopTimeout": "10s",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "3",
        "spark.cleaner.periodicGC.interval": "10min",
    }
    if settings.spark_packages:
        config["spark.jars.packages"] = settings.spark_packages
    if settings.spark_jars:
        config["spark.jars"] = settings.spark_jars
    return config
