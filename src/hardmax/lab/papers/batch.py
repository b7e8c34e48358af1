"""Several items into one folder: each kept when it is done, one failing not losing the others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hardmax import __version__
from hardmax._errors import DataError, HardmaxError, OutputError
from hardmax.io import read_json, write_json, write_text, write_with
from hardmax.io.columns import columns_of, write_columns
from hardmax.lab.papers import registry
from hardmax.lab.papers.outcome import DIFFERS, Context
from hardmax.plot.reproduction import draw_page

__all__ = ["PAGE", "Batch", "reproduce_items"]

PAGE = "index.html"
_TABLE = "comparisons.csv"


@dataclass
class Batch:
    """What became of the items that were asked for.

    Attributes
    ----------
    folder : Path
    records : dict
        Item -> its data (`Outcome.to_dict`), those of earlier runs included.
    kept : list of str
        Items that were there, finished with the same settings.
    failed : dict
        Item -> why it could not be computed.
    faults : dict
        Item -> the exception of a fault of this program.
    """

    folder: Path
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    faults: dict[str, Exception] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether no exact fact of any item differs."""
        return not any(
            c["exact"] and c["verdict"] == DIFFERS
            for record in self.records.values()
            for c in record["comparisons"]
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data: every item, and why others are missing."""
        failed = {**self.failed, **{name: repr(error) for name, error in self.faults.items()}}
        return {"folder": str(self.folder), "items": list(self.records.values()), "failed": failed}


def reproduce_items(
    names: Sequence[str],
    context: Context,
    *,
    folder: Path,
    force: bool = False,
    done: Callable[[str, Mapping[str, Any] | str], None] = lambda name, result: None,
) -> Batch:
    """Compute items one after the other; each is written when it is done.

    Per item the folder receives NAME.json and its pictures; index.html and
    comparisons.csv show all items of the folder.  An item that is there, made
    with the same settings by the same version, is not computed again.

    Parameters
    ----------
    names : sequence of str
        Names of `ITEMS`; all of them when empty.
    context : Context
        Its `work` is set to the folder `work` inside `folder`.
    folder : Path
    force : bool
        Compute all again, and replace results with other settings.
    done : callable
        Called with a name and its data, or the reason why there is none.

    Returns
    -------
    Batch

    Raises
    ------
    InputError
        For an unknown name.
    OutputError
        If the folder cannot be used, or holds results with other settings.
    """
    wanted = [registry.item_of(name).name for name in dict.fromkeys(names)] or [
        i.name for i in registry.ITEMS
    ]
    _prepare(folder)
    context = replace(context, work=folder / "work")
    settings = {**context.settings(), "version": __version__, "digest": _digest(context)}
    here = {} if force else {name: _there(folder, name) for name in wanted}
    _refuse_others(folder, here, settings)
    batch = Batch(folder)
    for name in wanted:
        record = here.get(name)
        if record is not None:
            batch.kept.append(name)
        else:
            record = _compute(batch, name, context, settings)
        if record is not None:
            batch.records[name] = record
            _write_page(folder)
        done(name, record or batch.failed.get(name) or repr(batch.faults[name]))
    return batch


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise OutputError(
            f"--out {folder}: cannot be a folder of results: {reason}. Give another."
        ) from None


def _digest(context: Context) -> str | None:
    """Of the weights that were given."""
    if context.weights is None:
        return None
    try:
        return hashlib.sha256(context.weights.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise DataError(f"{context.weights}: cannot be read: {error.strerror}.") from None


def _there(folder: Path, name: str) -> dict[str, Any] | None:
    """The data of an item that is finished, all pictures written; damaged files count as none."""
    place = folder / f"{name}.json"
    if not place.is_file():
        return None
    try:
        data = read_json(place)
        complete = data["item"] == name and {"verdict", "comparisons", "made_with"} <= set(data)
        complete = complete and all((folder / file).is_file() for file in data["pictures"])
    except (DataError, KeyError, TypeError):
        return None
    return dict(data) if complete else None


def _refuse_others(
    folder: Path, here: Mapping[str, dict[str, Any] | None], settings: Mapping[str, Any]
) -> None:
    for name, data in here.items():
        if data is not None and data["made_with"] != settings:
            old = ", ".join(
                f"{key} {value}"
                for key, value in data["made_with"].items()
                if value != settings.get(key) and key != "digest"
            )
            raise OutputError(
                f"{folder} holds {name} of another run ({old or 'other weights'}). Give --force "
                "to replace it, or another --out."
            )


def _compute(
    batch: Batch, name: str, context: Context, settings: Mapping[str, Any]
) -> dict[str, Any] | None:
    """One item computed and written; what goes wrong is noted in the batch."""
    try:
        outcome = registry.reproduce(name, context)
        for file, write in outcome.pictures.items():
            write_with(batch.folder / file, write, force=True)
        record = {**outcome.to_dict(), "made_with": dict(settings)}
        place = batch.folder / f"{name}.json"
        write_json(place, record, force=True)
        return dict(read_json(place))
    except (HardmaxError, MemoryError) as error:
        batch.failed[name] = str(error) or "not enough memory"
    except Exception as error:
        batch.faults[name] = error
    return None


def _write_page(folder: Path) -> None:
    """The page and the table of every item in the folder."""
    records = [data for item in registry.ITEMS if (data := _there(folder, item.name)) is not None]
    pictures = {file: (folder / file).read_bytes() for data in records for file in data["pictures"]}
    write_text(folder / PAGE, draw_page(records, pictures), force=True)
    rows = [
        {"item": data["item"], "form": data["form"], **{k: _cell(v) for k, v in c.items()}}
        for data in records
        for c in data["comparisons"]
    ]
    write_columns(folder / _TABLE, columns_of(rows), force=True)


def _cell(value: Any) -> Any:
    return str(value) if isinstance(value, list | dict) else value
