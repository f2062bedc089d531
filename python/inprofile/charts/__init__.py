"""Figures: how they look, the kinds there are, and the frame of the pages that show them."""
