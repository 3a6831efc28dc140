"""Client quotas: limits on what clients use, and the throttling of clients that exceed them."""
