"""Paper D: FDD-RED, a fair dropping discipline over RED."""
