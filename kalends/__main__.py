"""Entry point for `python -m kalends`."""

from kalends.commands import main

main()
