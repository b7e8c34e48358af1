"""What `hardmax reproduce` computes, one module per item of the papers."""
