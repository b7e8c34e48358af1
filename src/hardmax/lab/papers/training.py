"""Trained classifiers of the clustering paper: taken from a folder, or trained and kept there.

Short form: one epoch of every size.  Full form: 101 epochs.  A training that is
interrupted goes on from its last whole epoch.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hardmax._errors import DataError
from hardmax._types import Array
from hardmax.io import read_json, write_json, write_npz
from hardmax.lab.papers.outcome import Context
from hardmax.lab.papers.reviews import PaperReviews, paper_reviews
from hardmax.learn.paper import PaperModel, PaperSettings
from hardmax.learn.paper_train import HeldOut, PaperTrainer, notebook_draws, train_together

__all__ = ["DIMS", "SHARED", "Trained", "fitting", "reviews", "trained"]

DIMS = (2, 4, 8, 16)
_EPOCHS = {"short": 1, "full": 101}
_RECORD = ("dim", "seed", "device", "epochs_done", "history", "checks")

SHARED = (
    (
        "Words: the published cleaning, with WordNet's nouns from a package; vocabulary (121,296) "
        "and numbers are those of the authors. Without WordNet in the cache nouns are guessed, and "
        "the vocabulary differs."
    ),
    (
        "Draws (weights, order of the texts) follow the notebook's stream of torch seed 0, so d = "
        "2 starts from the authors' very weights. Later sums are rounded otherwise on another "
        "machine, and training at temperature .001 magnifies that."
    ),
    (
        "Losses and accuracies are means over texts; the authors average batch means, of which the "
        "last batch is smaller."
    ),
    (
        "On a CPU the layers are compiled and equal words computed once: the same values and "
        "gradients up to the order of sums."
    ),
    (
        "`alpha.clamp(0)` in the authors' code changes nothing, so alpha is free here too and may "
        "turn negative."
    ),
)


@dataclass(frozen=True)
class Trained:
    """A trained model, its record (history, checks) and where it came from."""

    dim: int
    model: PaperModel
    record: Mapping[str, Any]

    @property
    def history(self) -> list[dict[str, Any]]:
        """One row per epoch."""
        return list(self.record["history"])

    @property
    def best(self) -> tuple[float, int]:
        """The best test accuracy and its epoch, chosen on the test part as in the paper."""
        return max((row["test_accuracy"], -row["epoch"]) for row in self.history)

    def numbers(self) -> dict[str, Any]:
        """Plain data: the record without the settings."""
        kept = ("dim", "seed", "device", "history", "checks")
        return {key: self.record[key] for key in kept}


def reviews(context: Context) -> PaperReviews:
    """The paper's reviews, prepared once."""
    context.progress("preparing the reviews", 0, 1)
    return paper_reviews(context.cache)


def trained(dim: int, context: Context) -> Trained:
    """The model of one size: from a folder when it is complete there, else trained now."""
    epochs, name = _EPOCHS[context.form], f"d{dim}-seed{context.seed}"
    if context.training is not None:
        return _given(context.training, name, epochs)
    found = _found(context.work, name, epochs)
    if found is None and context.short:
        name = f"short-{name}"
        found = _found(context.work, name, epochs)
    return found if found is not None else _train(dim, context, epochs, name)


def _given(folder: Path, name: str, epochs: int) -> Trained:
    """From a folder that was named: there, or an error."""
    found = _found(folder, name, epochs)
    if found is None:
        raise DataError(
            f"{folder}: expected {name}.npz with {name}.json or {name.split('-')[-1]}.json and "
            f"at least {epochs} epochs. Leave --training out to train here."
        )
    return found


def _found(folder: Path, name: str, epochs: int) -> Trained | None:
    """A finished run: weights, and its record in a file of its own or of all sizes."""
    weights = folder / f"{name}.npz"
    record = _record(folder, name) if weights.is_file() else None
    if record is None or record["epochs_done"] < epochs:
        return None
    arrays = _arrays(weights)
    model = PaperModel(
        len(arrays["E"]), PaperSettings(dim=record["dim"], epochs=record["epochs_done"])
    )
    try:
        model.take(arrays)
    except RuntimeError:
        raise DataError(
            f"{weights}: expected weights of d = {record['dim']}, got E of shape "
            f"{arrays['E'].shape}. Remove the file."
        ) from None
    model.compiled = True
    return Trained(record["dim"], model, record)


def _record(folder: Path, name: str) -> dict[str, Any] | None:
    dim = int(name.removeprefix("short-").split("-")[0][1:])
    own, shared = folder / f"{name}.json", folder / f"{name.split('-')[-1]}.json"
    place = own if own.is_file() else shared
    if not place.is_file():
        return None
    data = read_json(place)
    try:
        runs = [data] if place == own else data["runs"]
        record = next((r for r in runs if r["dim"] == dim), None)
        if record is not None and not set(_RECORD) <= set(record):
            raise KeyError(*(set(_RECORD) - set(record)))
    except (KeyError, TypeError) as error:
        raise DataError(f"{place}: expected the record of a training; no {error}.") from None
    return record


def _arrays(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in ("E", "alpha", "v", "b")}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: expected trained weights, {error}. Remove the file.") from None


def fitting(model: PaperModel, data: PaperReviews) -> PaperModel:
    """The model, when it has one vector per word of the reviews.

    Raises
    ------
    DataError
        If its words are others, as without WordNet in the cache.
    """
    if len(model.E) != data.size:
        raise DataError(
            f"the weights have {len(model.E):,} words and the reviews {data.size:,} (nouns: "
            f"{data.lemmas}). Without WordNet the words differ: `hardmax data imdb --split paper` "
            "brings it."
        )
    return model


def _train(dim: int, context: Context, epochs: int, name: str) -> Trained:
    data = reviews(context)
    cut = data.train
    trainer = PaperTrainer(
        data.ids[:cut], data.labels[:cut], data.size, PaperSettings(dim=dim, epochs=epochs),
        seed=notebook_draws(dim, data.size, seed=context.seed),
        test=HeldOut(data.ids[cut:], data.labels[cut:]), device=context.device,
        check_rows=5000 if context.short else None, compiled=context.device == "cpu",
    )  # fmt: skip
    state = context.work / f"{name}.state.npz"
    _resume(trainer, state)
    what = f"training d = {dim}"

    def step(k: int) -> None:
        context.progress(what, trainer.epoch * trainer.steps + k, epochs * trainer.steps)

    def after(t: PaperTrainer) -> bool:
        if t.epoch < epochs:
            _keep(t, state)
        return True

    train_together([trainer], after, step)
    record = {
        "dim": dim, "seed": context.seed, "device": context.device, "lemmas": data.lemmas,
        "settings": vars(trainer.settings), "epochs_done": trainer.epoch,
        "history": trainer.history, "checks": trainer.checks,
    }  # fmt: skip
    write_npz(context.work / f"{name}.npz", trainer.model.arrays(), force=True)
    write_json(context.work / f"{name}.json", record, force=True)
    state.unlink(missing_ok=True)
    return Trained(dim, trainer.model, record)


def _keep(trainer: PaperTrainer, place: Path) -> None:
    """All that a later call needs to go on."""
    state = trainer.state()
    arrays: dict[str, Any] = {f"weights.{k}": v for k, v in state["weights"].items()}
    for k, moments in enumerate(state["adam"]):
        arrays |= {f"adam.{k}.{name}": value for name, value in moments.items()}
    rest = {key: state[key] for key in ("epoch", "history", "checks")}
    arrays["draws"] = state["draws"]
    arrays["rest"] = np.frombuffer(json.dumps(rest).encode(), np.uint8)
    write_npz(place, arrays, force=True)


def _resume(trainer: PaperTrainer, place: Path) -> None:
    if not place.is_file():
        return
    try:
        with np.load(place, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        rest = json.loads(arrays["rest"].tobytes())
        weights = {k.split(".")[1]: v for k, v in arrays.items() if k.startswith("weights.")}
        adam: list[dict[str, Array]] = [{} for _ in weights]
        for key, value in arrays.items():
            if key.startswith("adam."):
                adam[int(key.split(".")[1])][key.split(".")[2]] = value
        trainer.resume({"weights": weights, "adam": adam, "draws": arrays["draws"], **rest})
    except (OSError, ValueError, KeyError, EOFError, IndexError, zipfile.BadZipFile) as error:
        raise DataError(
            f"{place}: expected a training to go on with, {error}. Remove the file to begin anew."
        ) from None
