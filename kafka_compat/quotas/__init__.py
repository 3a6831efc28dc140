"""What clients may use: so far the stored quotas."""
