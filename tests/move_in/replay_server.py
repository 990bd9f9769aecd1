"""The recorded site as a server of its own: `python -m tests.move_in.replay_server SCRIPT --port 9000 …`.

The script and its options are those of the recording.
"""

import importlib.util
import sys
from typing import Any


def load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("replay", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    edit = module.walk

    def walk(value: Any) -> Any:
        """Edit a response; a description of parameters may have one that is named `id`."""
        if isinstance(value, dict) and isinstance(value.get("id"), dict | list):
            return {name: module.walk(entry) for name, entry in value.items()}
        return edit(value)

    module.walk = walk
    return module


if __name__ == "__main__":
    script = sys.argv.pop(1)
    load(script).main()
