"""Which versions of the code work with which schema (decision 0027).

A version is identified by its newest migration. `kalends migrate` stores each migration's declaration in the database
for servers of an earlier version, which do not contain the migration.
"""

from collections.abc import Mapping
from typing import Final

# The oldest code that works after each migration. Code never works with a schema older than the code. A migration
# that only adds something repeats the previous migration's value. A migration that removes something declares the
# first version whose code no longer uses it.
OLDEST_CODE: Final[Mapping[str, str]] = {
    "0035": "0035",
    "0036": "0035",
    "0037": "0035",
    "0038": "0035",
    "0039": "0035",
    "0040": "0035",
}
