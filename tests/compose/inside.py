"""A client inside the containers' network, which reads the topic's records and then writes the same number.

    python inside.py BOOTSTRAP TOPIC COUNT

It runs in a container of the broker's image with kafka-python installed, and prints a summary.
"""

import sys

from kafka import KafkaConsumer, KafkaProducer

bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
consumer = KafkaConsumer(
    topic,
    bootstrap_servers=bootstrap.split(","),
    group_id="inside",
    auto_offset_reset="earliest",
    consumer_timeout_ms=30_000,
)
read = {record.value for _, record in zip(range(count), consumer, strict=False)}
assert read == {b"outside %d" % number for number in range(count)}, f"{len(read)} of {count} records"
consumer.close()
producer = KafkaProducer(bootstrap_servers=bootstrap.split(","), acks="all")
for number in range(count):
    producer.send(topic, b"inside %d" % number)
producer.flush(30)
producer.close()
print(f"read {count} records from the host and wrote {count}")
