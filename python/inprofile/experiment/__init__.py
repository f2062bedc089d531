"""An experiment: its file read, varied, checked, drawn, and what it can be made of."""
