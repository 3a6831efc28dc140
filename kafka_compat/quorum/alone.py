"""Nodes whose settings name no other controller: the choice of their metadata store, and the first voter.

A node with both roles that is its only voter cannot know whether other brokers will join its cluster.

Rules
1. A node with a metadata log is a node of a quorum.
2. A node with the journal of a standalone broker remains a standalone broker, so that it keeps its topics.
3. A new node is a standalone broker if its address in controller.quorum.voters (or, without it, the only one
   in controller.quorum.bootstrap.servers) is one of the loopback interface, because nodes on other machines
   could not reach it. It starts in half the time of a quorum.
4. A new controller without controller.quorum.voters is the first voter of its cluster if it is itself the
   only one in controller.quorum.bootstrap.servers, as if it had been formatted with --standalone. Kafka's
   container images format it so.
"""

from __future__ import annotations

import logging
import os
import socket
from typing import TYPE_CHECKING

from kafka_compat.config.quorum import is_loopback
from kafka_compat.coordination.store.journal import JOURNAL_NAME
from kafka_compat.quorum.metadata_directory import OWN_LOG
from kafka_compat.storage.directories.directory_names import METADATA_LOG

if TYPE_CHECKING:
    from kafka_compat.config.quorum import QuorumConfig

log = logging.getLogger(__name__)


def is_standalone(config: QuorumConfig, log_directory: str) -> bool:
    """Return whether a node runs as a standalone broker. `log_directory` is the first one of log.dirs."""
    address = config.sole_address
    if address is None or not config.is_broker:
        return False
    if os.path.exists(f"{config.metadata_log_dir}/{METADATA_LOG}/{OWN_LOG}"):
        return False
    is_local = is_loopback(address[0])
    if os.path.exists(f"{log_directory}/{JOURNAL_NAME}"):
        if not is_local:
            log.info(
                "Node %d runs standalone, because %s contains the metadata of a standalone broker: other "
                "nodes cannot join its cluster",
                config.node_id,
                log_directory,
            )
        return True
    return is_local


def is_first_voter(config: QuorumConfig) -> bool:
    """Return whether this node names only itself as a bootstrap server, so that it begins the log of a
    cluster if its directory is not formatted. May wait for the resolution of a name.
    """
    if config.is_static or not config.is_controller or len(config.bootstrap_servers) != 1:
        return False
    host, port = config.bootstrap_servers[0]
    if port not in (each.port for each in config.listeners):
        return False
    own = {address[0] for address in config.advertised.values()} | {socket.gethostname()}
    return is_loopback(host) or host in own or _is_of_this_machine(host)


def _is_of_this_machine(host: str) -> bool:
    """Return whether a name stands for an address of this machine: only such an address can be bound."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
                return True
        except OSError:
            continue
    return False
