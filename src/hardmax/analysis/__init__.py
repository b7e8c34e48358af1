"""What a run means: leaders, the limit, its certificate, its polytope, laws."""
