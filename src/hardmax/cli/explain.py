"""`hardmax explain`: why a text gets its class, on the terminal, as JSON, page or animation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hardmax._errors import InputError
from hardmax.cli import options as opt
from hardmax.cli import text as terminal
from hardmax.cli.reading import load_classifier

__all__ = ["register"]

_EXAMPLES = """Examples:

hardmax explain model "A warm and clever film."\n
hardmax explain model --file review.txt --out review.html\n
hardmax explain model --file review.txt --json
"""
_ENDINGS = (".html", ".json", ".gif")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain", epilog=_EXAMPLES)(explain)


def explain(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder of `hardmax train`.")],
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The text.")] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file whose whole content is the text.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="Of more than two classes, whose logit is explained."),
    ] = None,
    among: Annotated[
        str, typer.Option(metavar="WORDS", help="Counterfactual among: words, leaders.")
    ] = "words",
    out: opt.Out = None,
    force: opt.Force = False,
    json: opt.Json = False,
) -> None:
    """Show the words that were added up, the leaders, and what would change the answer."""
    from hardmax.cli.targets import check_targets, json_writer, write_targets
    from hardmax.explain.contributions import explain as explain_text
    from hardmax.explain.report import report
    from hardmax.explain.scenes import save_gif

    if (text is None) == (file is None):
        raise InputError("expected a text or --file, one of them.")
    targets = check_targets(out, force=force, endings=_ENDINGS)
    clf = load_classifier(model)
    source = text if text is not None else _read(file)
    found = explain_text(clf, source, _label(clf, label))
    counter = found.counterfactual(among)
    data = {**found.to_dict(), "counterfactual": counter.to_dict() if counter else None}
    if json:
        from json import dumps

        typer.echo(dumps(data, ensure_ascii=True))
    else:
        _show(found, counter, among)
    writers = {
        ".html": lambda to: to.write(report(found).encode()),
        ".gif": lambda to: save_gif(found, to),
        ".json": json_writer(data),
    }
    write_targets(targets, writers, force=force, quiet=json)


def _label(clf: Any, label: str | None) -> Any:
    """A class by its name on the command line."""
    if label is None:
        return None
    names = {str(c): c for c in clf.classes_.tolist()}
    if label not in names:
        raise InputError(
            f"--label {label!r} is none of the classes {terminal.listed(list(names))}."
        )
    return names[label]


def _read(path: Path | None) -> str:
    from hardmax._errors import DataError

    try:
        return Path(str(path)).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.") from None


def _show(found: Any, counter: Any, among: str) -> None:
    from hardmax.explain.show import renderable

    console = terminal.console()
    with console.capture() as captured:
        console.print(renderable(found, counter, among))
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))
    sys.stdout.flush()
