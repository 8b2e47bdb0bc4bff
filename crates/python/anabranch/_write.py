"""Writes the table of a sweep into one file, with its metadata."""

from __future__ import annotations

import csv
import os

from . import _native


def write(self, path):
    """Writes the table, a row for each run, as Parquet or CSV by the suffix of `path`. The bytes do not depend on the executor or the order of runs.

    Scenario, seeds and version are the metadata of a Parquet file, and in CSV lines before the first row that begin with `#`.
    """
    path = os.fspath(path)
    kind = os.path.splitext(path)[1]
    if kind not in _WRITERS:
        raise _native.Error(f"{path}: a table is written as .parquet or .csv; let the name end in one of them")
    part = _new_part(path)
    try:
        _WRITERS[kind](self.table, part)
        os.replace(part, path)
    except BaseException:
        os.remove(part)
        raise


def _new_part(path):
    """Creates a file in the folder of `path`, with a name that no other file has, and returns its path."""
    folder, name = os.path.split(path)
    for attempt in range(100):
        # A process that was killed may have had this number.
        part = os.path.join(folder, f".{name[:50]}.{os.getpid()}-{attempt}.part")
        try:
            open(part, "x").close()
        except FileExistsError:
            continue
        return part
    raise _native.Error(f"{path}: cannot be written: remove the files .{name[:50]}.{os.getpid()}-N.part beside it")


def _csv(table, path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        for key, text in sorted(table.metadata.items()):
            for line in text.splitlines():
                file.write(f"# {key}: {line}\n")
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(table.columns)
        rows.writerows(zip(*(table[name] for name in table.columns)))


def _parquet(table, path):
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise _native.Error("a .parquet file needs pyarrow: pip install pyarrow; .csv needs nothing") from None
    # The metadata is sorted, because a map has no fixed order.
    metadata = dict(sorted(table.metadata.items()))
    pyarrow.parquet.write_table(pyarrow.table(table).replace_schema_metadata(metadata), path)


_WRITERS = {".csv": _csv, ".parquet": _parquet}
