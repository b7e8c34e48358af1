"""The hot operation: the sets of tokens with the largest score."""
