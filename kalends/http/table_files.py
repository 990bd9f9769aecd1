"""Tables as files to download."""

import asyncio
from typing import Final

from starlette.responses import Response

from kalends.adapters.table_writer import CSV_TYPE, XLSX_TYPE, write_csv, write_xlsx
from kalends.core.imports.column_names import get_header
from kalends.core.imports.table_headers import KINDS
from kalends.operations.context import ExportedTable
from kalends.operations.exports import CSV, XLSX

FILE_TYPES: Final = {CSV: CSV_TYPE, XLSX: XLSX_TYPE}
WRITERS: Final = {CSV: write_csv, XLSX: write_xlsx}


async def respond_with_table(table: ExportedTable, language: str) -> Response:
    """Return a table as a file with headers in a language. It is written in a thread, because that takes time."""
    headers = [get_header(table.kind, field, language) for field in KINDS[table.kind]]
    body = await asyncio.to_thread(WRITERS[table.format], headers, table.rows)
    return Response(
        body,
        headers={
            "Content-Disposition": f'attachment; filename="{table.kind}.{table.format}"',
            "Content-Language": language,
        },
        media_type=FILE_TYPES[table.format],
    )
