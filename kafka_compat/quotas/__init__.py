"""Client quotas: limits on resource usage, and throttling of clients that exceed them."""
