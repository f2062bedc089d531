"""Running experiments: what is run where, what runs leave, and how that is kept."""
