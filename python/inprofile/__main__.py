"""`python -m inprofile` is `inprofile`."""

from .cli import main

main()
