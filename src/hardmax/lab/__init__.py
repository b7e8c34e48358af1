"""Experiments: the figures of the papers and what varies them."""
