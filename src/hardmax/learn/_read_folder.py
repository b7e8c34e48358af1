"""Text files whose folder is their label: `pos/1.txt`, in a folder or an archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from hardmax._errors import DataError
from hardmax.learn._read_bytes import LONGEST, shown
from hardmax.learn._read_table import Bad, Row
from hardmax.learn._read_walk import files

__all__ = ["PARTS", "FolderReader", "hidden", "in_part", "label_folders"]

UNLABELLED = "unsup"
"""The folder of the texts without a label in the aclImdb layout."""
PARTS = ("train", "test")


def hidden(name: str) -> bool:
    """Whether a name is one of those that systems add to folders and archives."""
    parts = PurePosixPath(name).parts
    return any((p.startswith(".") and p not in (".", "..")) or p == "__MACOSX" for p in parts)


def in_part(name: str, part: str | None) -> bool:
    """Whether a part such as `train` is a folder in the name, or the name of the file."""
    path = PurePosixPath(name)
    return part is None or part.casefold() in (p.casefold() for p in (*path.parts, path.stem))


def label_folders(names: Sequence[str]) -> set[PurePosixPath]:
    """The folders that are labels: they hold texts, and no other such folder."""
    parents = {PurePosixPath(name).parent for name in names}
    above = {folder for parent in parents for folder in parent.parents}
    return parents - above - {PurePosixPath(".")}


class FolderReader:
    """Text files under `<label>/`; rows are named by the file.

    Parameters
    ----------
    path
        A folder or an archive.
    names
        The names of its files, in its order.
    part
        Only files below a folder of that name, such as `train`.
    labelled
        False reads all text files and no labels.
    """

    columns = None

    def __init__(
        self, path: Path, names: Sequence[str], encoding: str, part: str | None, labelled: bool
    ) -> None:
        self._path = path
        self._encoding = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
        self._labelled = labelled
        texts = [name for name in names if name.lower().endswith(".txt") and not hidden(name)]
        inside = [name for name in texts if in_part(name, part)]
        if texts and not inside:
            raise DataError(f"{shown(path)}: expected a folder {part!r} inside, got none.")
        folders = label_folders(inside)
        named = {folder for folder in folders if folder.name != UNLABELLED}
        chosen = [n for n in inside if not labelled or PurePosixPath(n).parent in named]
        if not chosen:
            raise DataError(
                f"{shown(path)}: expected text files in folders named by their label, such as "
                f"pos/1.txt, got {len(texts)} text files elsewhere among {len(names)} files."
            )
        self.labels = sorted({folder.name for folder in named})
        self._chosen = frozenset(chosen)
        self.format = "folder of text files" if path.is_dir() else "archive of text files"
        self.notes = tuple(self._notes(names, inside, chosen, part))

    def _notes(
        self, names: Sequence[str], inside: Sequence[str], chosen: Sequence[str], part: str | None
    ) -> Iterator[str]:
        kinds = Counter(PurePosixPath(name).parent.name == UNLABELLED for name in inside)
        if self._labelled and kinds[True]:
            yield f"{kinds[True]} texts without a label under {UNLABELLED}/ were left out"
        others = len(names) - len(chosen) - (kinds[True] if self._labelled else 0)
        if others:
            yield f"{others} other files were left out"
        parts = {p for name in chosen for p in PurePosixPath(name).parts[:-2] if p in PARTS}
        if part is None and len(parts) > 1:
            yield "train and test were read together; choose one as the part"
        if part is not None:
            yield f"the part {shown(part)} alone was read"

    def rows(self, bad: Bad) -> Iterator[Row]:
        """The texts with the names of their folders."""
        for member in files(self._path):
            if member.name not in self._chosen:
                continue
            data = member.read() if member.size <= LONGEST else b""
            if member.size > LONGEST or len(data) > LONGEST:
                bad("text too long", member.name)
                continue
            try:
                text = data.decode(self._encoding)
            except UnicodeError:
                bad("encoding", member.name)
                continue
            yield member.name, text, PurePosixPath(member.name).parent.name
