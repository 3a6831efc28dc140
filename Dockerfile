# A broker in a container, configured by Kafka's environment variables: KAFKA_LOG_RETENTION_MS is log.retention.ms.
#   docker build -t kafka-compat .
#   docker run -p 9092:9092 -e KAFKA_CREATE_TOPICS=orders:3:1 kafka-compat
# It takes the place of apache/kafka, confluentinc/cp-kafka and bitnami/kafka: docs/image.md.
# scripts/build-image builds it also where no registry of images can be reached.
ARG BASE=python:3.12-slim-bookworm

FROM ${BASE} AS build
# What pip installs; scripts/build-image may name a folder of wheels instead.
ARG INSTALL=/src[fast,otel,regex,schemas,telemetry]
# The hot modules become C extensions (docs/design/decisions/0009), and the compiler stays behind.
RUN case "$INSTALL" in /src*) apt-get update -qq && apt-get install -qq -y --no-install-recommends gcc libc6-dev >/dev/null ;; esac
COPY . /src
ENV KAFKA_COMPAT_COMPILE=1
RUN python3 -m venv /opt/kafka-compat \
    && /opt/kafka-compat/bin/pip install --no-cache-dir --disable-pip-version-check --quiet ${INSTALL} \
    && /opt/kafka-compat/bin/python -m compileall -q /opt/kafka-compat/lib \
    && /opt/kafka-compat/bin/pip uninstall --quiet --yes pip setuptools

FROM ${BASE} AS root
RUN { command -v nc && command -v strip; } >/dev/null \
    || { apt-get update -qq && apt-get install -qq -y --no-install-recommends netcat-openbsd binutils >/dev/null; }
RUN groupadd --gid 1000 kafka \
    && useradd --uid 1000 --gid kafka --home-dir /var/lib/kafka-compat --create-home --shell /usr/sbin/nologin kafka
COPY --from=build /opt/kafka-compat /opt/kafka-compat
COPY image /image
RUN /image/install && /image/trim && rm -rf /image

# What is left, as one layer.
FROM scratch
COPY --from=root / /
ENV PATH=/opt/kafka-compat/bin:/opt/kafka/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    PYTHONUNBUFFERED=1
USER 1000:1000
WORKDIR /var/lib/kafka-compat
VOLUME /var/lib/kafka-compat
EXPOSE 9092
HEALTHCHECK --interval=5s --timeout=6s --start-period=10s --retries=3 CMD ["/etc/kafka-compat/health"]
ENTRYPOINT ["/etc/kafka-compat/entrypoint"]
CMD ["/etc/kafka/docker/run"]
