"""What tests do to a broker that clients cannot: over HTTP, with kafka.compat.control.enable."""
