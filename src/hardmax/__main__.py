"""`python -m hardmax` is the command line."""

from hardmax.cli.main import main

if __name__ == "__main__":
    main()
