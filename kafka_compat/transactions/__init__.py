"""Transactions: transactional ids, their markers, and the verification of records (KIP-890)."""
