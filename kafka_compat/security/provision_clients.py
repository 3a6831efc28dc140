"""What each kind of client is given to connect as a user: files that it reads as they are. Pure."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import NamedTuple

from kafka_compat.config.properties import write_properties

MECHANISM = "SCRAM-SHA-512"


class Access(NamedTuple):
    """How one user connects. `authority` is the certificate to trust, PEM; `folder` is where the files are
    going to be, among them the certificate as ca.pem.
    """

    bootstrap: str
    user: str
    password: str
    authority: str
    folder: PurePath


def client_files(access: Access) -> dict[str, str]:
    """Name of the file -> its text, for every kind of client that we know."""
    return {
        "ca.pem": access.authority,
        "client.properties": _java(access),
        "librdkafka.conf": _librdkafka(access),
        "kafka_python_settings.py": _kafka_python(access),
        "aiokafka_settings.py": _aiokafka(access),
        "franz.go": _franz_go(access),
        "kafkajs.js": _kafkajs(access),
        "spark_options.py": _spark(access),
    }


def jaas(user: str, password: str) -> str:
    """The setting sasl.jaas.config. Neither has a quotation mark or a backslash."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{user}" password="{password}";'


def _java(access: Access) -> str:
    settings = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": jaas(access.user, access.password),
        "ssl.truststore.type": "PEM",
        # In the file itself, so that it can be copied to where it is used.
        "ssl.truststore.certificates": access.authority,
    }
    about = (
        "Java clients from 2.7 on, and Kafka's tools: --command-config, --producer.config, --consumer.config"
    )
    return f"# {about}\n{write_properties(settings)}"


def _librdkafka(access: Access) -> str:
    settings = {
        "bootstrap.servers": access.bootstrap,
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": MECHANISM,
        "sasl.username": access.user,
        "sasl.password": access.password,
        "ssl.ca.location": str(access.folder / "ca.pem"),
    }
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    return f"# librdkafka: kcat -F librdkafka.conf; all clients of it take these settings\n{lines}"


def _python_settings(access: Access, more: str) -> str:
    return (
        "SETTINGS = {\n"
        f'    "bootstrap_servers": {_python(access.bootstrap)},\n'
        '    "security_protocol": "SASL_SSL",\n'
        f'    "sasl_mechanism": "{MECHANISM}",\n'
        f'    "sasl_plain_username": {_python(access.user)},\n'
        f'    "sasl_plain_password": {_python(access.password)},\n'
        f"    {more},\n"
        "}\n"
    )


def _kafka_python(access: Access) -> str:
    return (
        '"""from kafka_python_settings import SETTINGS; KafkaProducer(**SETTINGS)"""\n\n'
        "from pathlib import Path\n\n"
        + _python_settings(access, '"ssl_cafile": str(Path(__file__).with_name("ca.pem"))')
    )


def _aiokafka(access: Access) -> str:
    return (
        '"""from aiokafka_settings import SETTINGS; AIOKafkaProducer(**SETTINGS)"""\n\n'
        "import ssl\nfrom pathlib import Path\n\n"
        + _python_settings(
            access, '"ssl_context": ssl.create_default_context(cafile=Path(__file__).with_name("ca.pem"))'
        )
    )


def _franz_go(access: Access) -> str:
    servers = ", ".join(json.dumps(server) for server in access.bootstrap.split(","))
    return f"""// Package access has what kgo.NewClient needs: kgo.NewClient(access.Options()...)
package access

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const authority = `{access.authority}`

// Options are those of the user {access.user}.
func Options() []kgo.Opt {{
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(authority))
	login := scram.Auth{{User: {json.dumps(access.user)}, Pass: {json.dumps(access.password)}}}
	return []kgo.Opt{{
		kgo.SeedBrokers({servers}),
		kgo.DialTLSConfig(&tls.Config{{RootCAs: roots, MinVersion: tls.VersionTLS12}}),
		kgo.SASL(login.AsSha512Mechanism()),
	}}
}}
"""


def _kafkajs(access: Access) -> str:
    return f"""// new Kafka(require('./kafkajs.js'))
const fs = require('fs')
const path = require('path')

module.exports = {{
  brokers: {json.dumps(access.bootstrap.split(","))},
  ssl: {{ ca: [fs.readFileSync(path.join(__dirname, 'ca.pem'), 'utf-8')] }},
  sasl: {{
    mechanism: 'scram-sha-512',
    username: {json.dumps(access.user)},
    password: {json.dumps(access.password)},
  }},
}}
"""


def _spark(access: Access) -> str:
    options = {
        "kafka.bootstrap.servers": access.bootstrap,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": MECHANISM,
        "kafka.sasl.jaas.config": jaas(access.user, access.password),
        "kafka.ssl.truststore.type": "PEM",
        # Executors on other machines have no file of it.
        "kafka.ssl.truststore.certificates": access.authority,
    }
    lines = "".join(f"    {_python(name)}: {_python(value)},\n" for name, value in options.items())
    about = 'spark.read.format("kafka").options(**OPTIONS).option("subscribe", "topic").load()'
    return f"# from spark_options import OPTIONS; {about}\nOPTIONS = {{\n{lines}}}\n"


def _python(text: str) -> str:
    return json.dumps(text)
