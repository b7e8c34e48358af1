"""The trained classifier: reading reviews, the model, the loop."""
