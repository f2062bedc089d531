"""A paper of the gallery."""
