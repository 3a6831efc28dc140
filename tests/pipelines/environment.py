"""What JVMs are started with."""

from tests.support.campaign import enabled

QUICK_START = {} if enabled() else {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""A JVM that works for seconds only never earns what its second compiler costs."""
