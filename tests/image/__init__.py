"""The container image: its scripts without Docker, and with scripts/image-test the image itself."""
