"""Checkpoints of a training: one file, written whole, bound to its settings and data."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hardmax._errors import DataError, InputError
from hardmax._types import Array
from hardmax.io import check_target, dumps, write_bytes
from hardmax.io.read import read_bytes

__all__ = ["Checkpoint"]

_FORMAT = 1
_BEST, _CARD, _SUM = "best.", "card", "crc32"


def _digest(settings: Any, data: Any, size: int, seed: int) -> str:
    """A digest of everything that decides the result."""
    h = hashlib.sha256(json.dumps([settings.to_dict(), size, seed], sort_keys=True).encode())
    parts = [data.tokens.ids, data.tokens.counts, data.tokens.offsets, data.tokens.texts]
    for part in [*parts, data.labels, *([] if data.weights is None else [data.weights])]:
        h.update(np.ascontiguousarray(part).view(np.uint8).data)
    return h.hexdigest()


def _sum(tensors: Mapping[str, Array]) -> int:
    """A sum over everything, so that damage does not pass as another state."""
    total = 0
    for key in sorted(tensors):
        value = np.ascontiguousarray(tensors[key])
        total = zlib.crc32(f"{key} {value.dtype} {value.shape}".encode(), total)
        total = zlib.crc32(value.reshape(-1).view(np.uint8).data, total)
    return total


@dataclass(frozen=True)
class Checkpoint:
    """Where a training is kept, if anywhere, and which training it is."""

    path: Path | None
    digest: str

    @classmethod
    def of(
        cls, path: Path | None, settings: Any, data: Any, size: int, seed: int, *, first: bool
    ) -> Checkpoint:
        """The checkpoint of a training; the first process checks the place before the work."""
        if path is None:
            return cls(None, "")
        path = Path(path)
        if first:
            check_target(path, force=True)
            for left in path.parent.glob(f".{path.name[:100]}.*.tmp"):
                left.unlink(missing_ok=True)
        return cls(path, _digest(settings, data, size, seed))

    def write(self, state: dict[str, Array], history: Sequence[Any], best: Any) -> None:
        """Write everything whole, over the one before."""
        if self.path is None:
            return
        from safetensors.numpy import save

        tensors = {key: np.array(value, order="C") for key, value in state.items()}
        if best is not None:
            for key, value in best.state_dict().items():
                tensors[_BEST + key] = value.numpy()
        card = {
            "format": _FORMAT,
            "digest": self.digest,
            "history": [asdict(entry) for entry in history],
        }
        tensors[_CARD] = np.frombuffer(dumps(card).encode(), dtype=np.uint8)
        tensors[_SUM] = np.array(_sum(tensors), dtype=np.uint32)
        write_bytes(self.path, save(tensors), force=True)

    def read(self) -> tuple[dict[str, Array], dict[str, Array], list[dict[str, Any]]] | None:
        """State, best model and history of an earlier run; None when there is none.

        Raises
        ------
        DataError
            If the file is no checkpoint, damaged, or of a newer format.
        InputError
            If it belongs to other data or settings.
        """
        if self.path is None or not self.path.exists():
            return None
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            tensors = load(read_bytes(self.path))
            found = int(tensors.pop(_SUM))
            whole = found == _sum(tensors)
            card = json.loads(tensors.pop(_CARD).tobytes())
            version, digest, history = card["format"], card["digest"], card["history"]
        except (SafetensorError, ValueError, TypeError, KeyError, AttributeError):
            raise DataError(
                f"{self.path}: expected a checkpoint of a training, got another file. "
                "Give another name."
            ) from None
        if not whole:
            raise DataError(
                f"{self.path}: differs from what was written; it is damaged. Remove it, and train "
                "anew."
            )
        if version != _FORMAT:
            raise DataError(f"{self.path}: format {version}, this version reads {_FORMAT}.")
        if digest != self.digest:
            raise InputError(
                f"{self.path}: the checkpoint of another training (other texts, settings or "
                "seed). Give another name, or remove the file."
            )
        best = {k.removeprefix(_BEST): v for k, v in tensors.items() if k.startswith(_BEST)}
        return {k: v for k, v in tensors.items() if not k.startswith(_BEST)}, best, history
