"""Estimators in the manner of scikit-learn: thin, no new mathematics."""
