"""python -m kalends"""

from kalends.cli import main

main()
