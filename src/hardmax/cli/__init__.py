"""The command line: parse, one call of the library, show."""
