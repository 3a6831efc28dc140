"""Transactions: transactional IDs, markers, and the verification of records (KIP-890)."""
