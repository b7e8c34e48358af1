"""What enters the library: points, and later texts."""
