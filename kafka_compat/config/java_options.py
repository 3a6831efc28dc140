"""Settings that people give to Kafka's JVM, as `-Dname=value` in KAFKA_OPTS: the JAAS file, and how to reach
ZooKeeper."""

import shlex

_JAAS_FILES = ("kafka.compat.sasl.jaas.file", "kafka.compat.zookeeper.sasl.jaas.file")
_SETTINGS = {
    "java.security.auth.login.config": _JAAS_FILES,
    "zookeeper.client.secure": ("zookeeper.ssl.client.enable",),
    "zookeeper.clientCnxnSocket": ("zookeeper.clientCnxnSocket",),
    "zookeeper.sasl.client": ("kafka.compat.zookeeper.sasl.enable",),
    "zookeeper.sasl.clientconfig": ("kafka.compat.zookeeper.sasl.jaas.section",),
    "zookeeper.ssl.ciphersuites": ("zookeeper.ssl.cipher.suites",),
    "zookeeper.ssl.crl": ("zookeeper.ssl.crl.enable",),
    "zookeeper.ssl.enabledProtocols": ("zookeeper.ssl.enabled.protocols",),
    "zookeeper.ssl.hostnameVerification": ("zookeeper.ssl.endpoint.identification.algorithm",),
    "zookeeper.ssl.keyStore.location": ("zookeeper.ssl.keystore.location",),
    "zookeeper.ssl.keyStore.password": ("zookeeper.ssl.keystore.password",),
    "zookeeper.ssl.keyStore.type": ("zookeeper.ssl.keystore.type",),
    "zookeeper.ssl.ocsp": ("zookeeper.ssl.ocsp.enable",),
    "zookeeper.ssl.protocol": ("zookeeper.ssl.protocol",),
    "zookeeper.ssl.trustStore.location": ("zookeeper.ssl.truststore.location",),
    "zookeeper.ssl.trustStore.password": ("zookeeper.ssl.truststore.password",),
    "zookeeper.ssl.trustStore.type": ("zookeeper.ssl.truststore.type",),
}
"""Property of Java and its ZooKeeper client -> the settings for it."""


def settings_from_java_options(options: str) -> dict[str, str]:
    """The settings among the options of a JVM; what else is there concerns Java alone."""
    settings = {}
    try:
        words = shlex.split(options)
    except ValueError:
        # An odd quotation mark: a shell would not have started Kafka.
        words = options.split()
    for word in words:
        name, _, value = word.removeprefix("-D").partition("=")
        if not word.startswith("-D"):
            continue
        for setting in _SETTINGS.get(name, ()):
            if setting == "zookeeper.ssl.endpoint.identification.algorithm":
                value = "HTTPS" if value.lower() == "true" else ""
            settings[setting] = value
    return settings
