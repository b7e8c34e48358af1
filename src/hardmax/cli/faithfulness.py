"""`hardmax faithfulness`: how far the explanations agree with what removals do."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from hardmax.cli import options as opt
from hardmax.cli import text
from hardmax.cli.overview import Texts, texts_of
from hardmax.cli.reading import TextColumn, load_classifier

__all__ = ["register"]

_EXAMPLES = """Examples:

hardmax faithfulness model corpus --limit 20

hardmax faithfulness model reviews.csv --limit 100
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("faithfulness", epilog=_EXAMPLES)(faithfulness)


def faithfulness(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder of `hardmax train`.")],
    source: Texts,
    text_column: TextColumn = None,
    limit: Annotated[int, typer.Option(min=1, help="How many texts.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of the random ranking.")] = 0,
    json: opt.Json = False,
) -> None:
    """Measure how well rankings of words agree with what the model does without them."""
    from hardmax.explain.faithfulness import faithfulness as measure

    clf = load_classifier(model)
    texts = list(islice(texts_of(source, text_column), limit))
    rows = measure(clf, texts, seed=seed)
    if json:
        from json import dumps

        typer.echo(dumps([row.to_dict() for row in rows]))
        return
    heads = ("ranking", "compr.", "suff.", "deletion", "insertion", "tau LOO", "same", "ms")
    lines = [
        (
            r.method,
            f"{r.comprehensiveness:.4f}",
            f"{r.sufficiency:.4f}",
            f"{r.deletion:.4f}",
            f"{r.insertion:.4f}",
            f"{r.agreement:.3f}",
            "yes" if r.identical else "no",
            f"{1000 * r.seconds:.1f}",
        )
        for r in rows
    ]
    text.say(f"{text.counted(rows[0].texts, 'text')}; seed {seed} of the random ranking")
    text.print_table(heads, lines, "rankings")
