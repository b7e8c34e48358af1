"""The one place that opens files: tables, arrays, JSON, and saved models.

Every file is written whole or not at all: to a temporary file in the same
folder, flushed to the disk, then renamed.  An existing file is replaced only
on request.  Nothing that is read can run code.
"""

from hardmax.io.model import FORMAT, check_folder, load_model, model_kind, save_model
from hardmax.io.read import ENDINGS, Table, read_array, read_json, read_matrix, read_table
from hardmax.io.write import (
    check_target,
    dumps,
    plain,
    write_bytes,
    write_json,
    write_npz,
    write_text,
    write_with,
)

__all__ = [
    "ENDINGS",
    "FORMAT",
    "Table",
    "check_folder",
    "check_target",
    "dumps",
    "load_model",
    "model_kind",
    "plain",
    "read_array",
    "read_json",
    "read_matrix",
    "read_table",
    "save_model",
    "write_bytes",
    "write_json",
    "write_npz",
    "write_text",
    "write_with",
]
