"""Paper B: RI+O, a RIO that also holds the average of OUT packets alone."""
