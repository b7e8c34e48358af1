"""Explanations of the classifier that are its computation."""
