"""Scenes (the numbers of a picture) and what draws them; computes nothing."""
