"""Generates the models of the example client from /doc with datamodel-code-generator; `--check` only compares."""

import subprocess
import sys
from pathlib import Path

import orjson
from datamodel_code_generator import InputFileType, PythonVersion, generate
from datamodel_code_generator.enums import DataModelType

from kalends.api.description.document import make_document
from kalends.routes import INTERFACE

MODELS = Path(__file__).resolve().parent.parent / "tests" / "description" / "client" / "models.py"


def render() -> str:
    """Return the models of all schemas, generated without special knowledge of the API."""
    document = orjson.loads(make_document(INTERFACE, "en", 12))
    models = generate(
        orjson.dumps(document).decode(),
        input_file_type=InputFileType.OpenAPI,
        output_model_type=DataModelType.PydanticV2BaseModel,
        target_python_version=PythonVersion.PY_312,
        use_standard_collections=True,
        use_union_operator=True,
        disable_timestamp=True,
        snake_case_field=False,
        formatters=[],
        custom_file_header='"""Models of the interface, generated from /doc by `just client`."""\n# ruff: noqa',
    )
    # Format like the project, so that differences in the output are differences of the API.
    formatted = subprocess.run(
        ["ruff", "format", "--stdin-filename", str(MODELS), "-"],
        input=str(models),
        capture_output=True,
        text=True,
        check=True,
    )
    return formatted.stdout


def main() -> int:
    models = render()
    if "--check" in sys.argv:
        return 0 if MODELS.exists() and MODELS.read_text() == models else 1
    MODELS.parent.mkdir(parents=True, exist_ok=True)
    MODELS.write_text(models)
    return 0


if __name__ == "__main__":
    sys.exit(main())
