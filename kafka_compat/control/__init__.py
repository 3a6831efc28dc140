"""Control API: operations on a broker over HTTP for tests, enabled by kafka.compat.control.enable."""
