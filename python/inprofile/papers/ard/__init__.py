"""Paper A: the Adaptive Regulating Drop marker (Hur 2006)."""
