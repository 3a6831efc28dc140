"""The container image: its scripts without Docker, and, by scripts/image-test, the image itself."""
