"""Results as files: all places are checked before the work, each written whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import typer

from hardmax._errors import HardmaxError, InputError
from hardmax.cli.text import one_line, say

__all__ = ["DATA", "PICTURES", "check_targets", "pictures_of", "write_targets"]

PICTURES = (".png", ".pdf", ".svg", ".gif", ".html")
DATA = (".json", ".npz")

Writer = Callable[[BinaryIO], Any]


def check_targets(
    out: Sequence[Path] | None,
    *,
    force: bool,
    endings: Sequence[str] = PICTURES + DATA,
    option: str = "--out",
) -> list[Path]:
    """Every target can be written, so that no work is done in vain."""
    from hardmax.io import check_target

    targets = list(out or ())
    for path in targets:
        if path.suffix.lower() not in endings:
            raise InputError(f"{option} {path}: expected an ending of {' '.join(endings)}.")
        if targets.count(path) > 1:
            raise InputError(f"{option} {path} is given twice. Give each file once.")
        check_target(path, force=force)
    return targets


def check_pictures(targets: Sequence[Path], d: int, axes: tuple[int, ...] | None) -> None:
    """Pictures of more than three coordinates need to be told which to show."""
    for path in targets:
        kind = path.suffix.lower()
        if d > 3 and axes is None and kind in (".png", ".pdf", ".svg", ".gif"):
            raise InputError(f"--out {path}: the tokens have d = {d}. Choose with --axes 0,1.")
        if axes is not None and len(axes) == 3 and d > 3 and kind in (".gif", ".html"):
            raise InputError(f"--out {path}: expected two --axes, got {len(axes)}.")


def pictures_of(
    scene: Any, *, axes: Any = None, panels: Sequence[int] | None = None
) -> dict[str, Writer]:
    """How to write a scene, by ending."""
    plane = axes if axes is not None and len(axes) == 2 else None

    def draw(kind: str) -> Writer:
        return lambda file: _draw(scene, file, kind, axes, panels)

    def animate(file: BinaryIO) -> None:
        from hardmax.plot.figures import save_gif

        save_gif(scene, file, axes=plane)

    def tell(file: BinaryIO) -> None:
        from hardmax.plot.page import page

        file.write(page(scene, axes=plane).encode())

    drawn = {kind: draw(kind) for kind in (".png", ".pdf", ".svg")}
    return {**drawn, ".gif": animate, ".html": tell}


def _draw(
    scene: Any,
    file: BinaryIO,
    kind: str,
    axes: Any,
    panels: Sequence[int] | None,
) -> None:
    from hardmax.plot import figures

    solid = len(axes) == 3 if axes else scene.dim == 3
    if panels is not None and not solid:
        figure: Any = figures.draw_layers(scene, layers=panels, axes=axes)
    elif solid:
        figure = figures.draw_trajectories_3d(scene, axes=axes).figure
    else:
        figure = figures.draw_trajectories(scene, axes=axes).figure
    figures.save_figure(figure, file, kind)


def write_targets(
    targets: Sequence[Path], writers: Mapping[str, Writer], *, force: bool, quiet: bool
) -> None:
    """Write every target; one that fails does not stop the others.

    Ends the command with status 2 when one failed.
    """
    from hardmax.io import write_with

    failed = False
    for path in targets:
        try:
            write_with(path, writers[path.suffix.lower()], force=force)
        except HardmaxError as error:
            typer.echo(f"error: {one_line(error)}", err=True)
            failed = True
        else:
            say(f"wrote {path}", error=quiet)
    if failed:
        raise typer.Exit(2)


def json_writer(data: Any) -> Writer:
    """Data as JSON."""
    from hardmax.io import dumps

    return lambda file: file.write((dumps(data) + "\n").encode())


def npz_writer(arrays: Mapping[str, Any]) -> Writer:
    """Arrays as a compressed NPZ file."""
    import numpy as np

    save: Callable[..., None] = np.savez_compressed
    return lambda file: save(file, **arrays)
