"""What clients push of their own metrics (KIP-714): what they are asked for, and what of it is kept."""
