"""Environment variables for JVMs."""

from tests.support.campaign import enabled

QUICK_START = {} if enabled() else {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For a JVM that runs for a few seconds, the second compiler costs more time than it saves."""
