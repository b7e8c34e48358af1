"""Attention, one layer, and runs of layers."""
