# A stand-in for zookeeper:3.9 where no registry of images can be reached: Debian's ZooKeeper on the stand-in that
# scripts/build-image makes, with its data and port where the official image has them. Not for use outside of tests.
ARG BASE
FROM ${BASE}
RUN apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        zookeeper openjdk-17-jre-headless >/dev/null \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
RUN useradd --uid 1000 --user-group --shell /usr/sbin/nologin keeper \
    && mkdir -p /data /datalog \
    && chown keeper /data /datalog \
    && printf '%s\n' dataDir=/data dataLogDir=/datalog clientPort=2181 tickTime=2000 admin.enableServer=false \
        4lw.commands.whitelist=srvr > /zoo.cfg
USER keeper
VOLUME ["/data", "/datalog"]
EXPOSE 2181
CMD ["java", "-cp", "/etc/zookeeper/conf:/usr/share/java/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain", "/zoo.cfg"]
