"""Every item that can be reproduced, in the order in which a page shows them."""

from __future__ import annotations

import dataclasses
import time
from contextlib import nullcontext
from typing import BinaryIO

from hardmax._errors import InputError, OutputError
from hardmax.lab.papers import (
    classifier,
    fw_cells,
    fw_counter,
    fw_metastable,
    fw_rates,
    leaders,
    moving,
    tikhonov,
)
from hardmax.lab.papers.outcome import Context, Item, Outcome, claim
from hardmax.lab.reproduce import figure2
from hardmax.plot.figures import save_figure

__all__ = ["ITEMS", "item_of", "reproduce"]


def _figure2(context: Context) -> Outcome:
    """Figure 2 with its facts decided in rationals."""
    figure = figure2(seed=context.seed)
    facts = [claim(fact.claim, fact.holds, fact.holds) for fact in figure.facts]

    def picture(file: BinaryIO) -> None:
        save_figure(figure.draw(), file, "png")

    return Outcome(
        "figure2", "Figure 2: four arrangements, layer by layer", "arXiv 2407.01602, figure 2",
        context, tuple(facts), figure.to_dict(), {"figure2.png": picture}, _FIGURE2,
    )  # fmt: skip


_FIGURE2 = (
    (
        "The notebook sets no seed, so random tokens differ from the printed ones; every fact "
        "checked holds for any of them."
    ),
    "Leaders are logged at the layer of their birth; the notebook derives them at each layer anew.",
    "Limits are proved in rational arithmetic; the notebook stops at layer 30.",
)

ITEMS = (
    Item("figure2", "figure 2 of the clustering paper", _figure2),
    Item("losses", "training loss, softmax and hardmax", classifier.losses, ("reviews",)),
    Item("accuracies", "accuracy for d = 2, 4, 8, 16", classifier.accuracies, ("reviews",)),
    Item("leaders", "the table of leaders", leaders.leader_table, ("reviews",)),
    Item("reviews", "two reviews through the layers", moving.moving_reviews, ("reviews",)),
    Item("histogram", "words that lead", leaders.leader_words, ("reviews",)),
    Item("tikhonov", "figure 1 of the interpolation paper", tikhonov.penalties),
    Item("fw-rates", "Frank-Wolfe paper: theorem 4.2 and rates", fw_rates.rates),
    Item("fw-cells", "Frank-Wolfe paper: cells", fw_cells.cells),
    Item("fw-metastable", "Frank-Wolfe paper: metastable times", fw_metastable.metastable),
    Item("fw-counterexamples", "Frank-Wolfe paper: what fails", fw_counter.counterexamples),
)


def item_of(name: str) -> Item:
    """The item of a name.

    Raises
    ------
    InputError
        If there is none.
    """
    for item in ITEMS:
        if item.name == name:
            return item
    raise InputError(f"no item {name!r}. There are: {', '.join(i.name for i in ITEMS)}.")


def reproduce(name: str, context: Context) -> Outcome:
    """Compute one item, with its time.

    Parameters
    ----------
    name : str
        A name of `ITEMS`.
    context : Context
        The form, the seed, and where long items keep what they have.

    Returns
    -------
    Outcome

    Raises
    ------
    DataError
        If the item needs the IMDb reviews and they are not in the cache.
    OutputError
        If the folder of work cannot be made.
    """
    item = item_of(name)
    start = time.perf_counter()
    try:
        context.work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{context.work}: cannot be made: {error.strerror}.") from None
    from hardmax.select.threads import one_thread

    with nullcontext() if item.needs else one_thread():
        outcome = item.compute(context)
    return dataclasses.replace(outcome, seconds=time.perf_counter() - start)
