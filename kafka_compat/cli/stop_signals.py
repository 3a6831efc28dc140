"""The signals on which brokers stop."""

import signal


def stop_signals() -> list[signal.Signals]:
    """Return SIGINT, SIGTERM, and SIGHUP (the terminal was closed), unless nohup has disabled SIGHUP."""
    found = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        found.append(signal.SIGHUP)
    return found
