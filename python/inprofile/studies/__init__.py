"""Questions that are studied by running experiments: one module or package each."""
