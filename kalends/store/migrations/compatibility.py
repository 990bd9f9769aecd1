"""Which code works on which schema (decision 0027).

Code is named by the newest migration that it contains. `kalends migrate` stores the declaration of each migration in
the database, where servers of an earlier version read it: they do not contain the migration.
"""

from collections.abc import Mapping
from typing import Final

# The oldest code that works after each migration. Code never works on a schema that is older than itself.
# A migration that only adds something repeats the value of the previous one. A migration that removes something which
# the code of migration N does not use anymore declares N. Migrations before the first declaration suit their own code
# only.
OLDEST_CODE: Final[Mapping[str, str]] = {
    "0020": "0019",
    "0021": "0019",
    "0022": "0019",
    "0023": "0019",
    "0024": "0019",
    "0025": "0019",
    "0026": "0019",
    "0027": "0019",
    "0028": "0019",
    "0029": "0019",
}
