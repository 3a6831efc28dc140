"""What clients may use, and how long those that use more wait."""
