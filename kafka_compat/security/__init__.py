"""Authentication of clients and brokers, and authorization of their requests."""
