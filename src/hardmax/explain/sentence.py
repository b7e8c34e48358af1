"""An explanation in plain language."""

from __future__ import annotations

from collections.abc import Sequence

from hardmax.explain.counterfactual import EXHAUSTIVE, Counterfactual, candidates
from hardmax.explain.explanation import Explanation

__all__ = ["counter_sentence", "main_sentence"]

_FEW, _MANY = 3, 12


def main_sentence(explanation: Explanation) -> str:
    """The prediction, how sure, and the tokens that say most for and against it."""
    said = [f"The model says {shown(explanation.prediction)} ({_sure(explanation)})."]
    if not explanation.contributions:
        return f"{said[0]} No word of the text is in its vocabulary, so this is the bias alone."
    other = len(explanation.classes) > 2 and explanation.label != explanation.prediction
    about = explanation.label if other else explanation.prediction
    if other:
        said.append(f"To {shown(about)} it gives {explanation.probability:.1%}.")
    sign = 1 if about == explanation.label else -1
    worth = [(c.word, sign * c.contribution) for c in explanation.contributions]
    pro = [word for word, x in worth if x > 0][:_FEW]
    con = [word for word, x in worth if x < 0][:_FEW]
    it = shown(about) if other else "it"
    said += [f"Most for {it}: {_list(pro)}."] if pro else [f"No word speaks for {it}."]
    said += [f"Most against {it}: {_list(con)}."] if con else [f"No word speaks against {it}."]
    return " ".join(said)


def _sure(explanation: Explanation) -> str:
    return f"{explanation.probabilities[explanation.classes.index(explanation.prediction)]:.1%}"


def counter_sentence(
    explanation: Explanation, found: Counterfactual | None, among: str = "words"
) -> str:
    """What would have to go for another prediction, and how sure that is the least."""
    what = "words" if among == "words" else "words of leaders"
    if found is None and len(candidates(explanation, explanation.removal, among)) <= EXHAUSTIVE:
        return f"No removal of {what} changes the prediction."
    if found is None:
        return f"No removal of {what} was found that changes the prediction."
    n = len(found.removed)
    words = f"the {'word' if n == 1 else f'{n} words'} {_list(found.removed)}"
    end = f"the model would say {shown(found.prediction)} (logit {found.logit:+.3f})."
    if found.proved_minimal:
        sure = f"No smaller set of {what} does that."
    else:
        sure = f"At least {found.at_least} words are needed; {n} is an upper bound."
    return f"Without {words}, {end} {sure}"


def shown(value: object, longest: int = 60) -> str:
    """A word or class on one line, without characters that do not print."""
    text = "".join(c if c.isprintable() else " " for c in str(value))
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _list(words: Sequence[str]) -> str:
    kept = [f"“{shown(word)}”" for word in words[:_MANY]]
    more = len(words) - len(kept)
    return ", ".join(kept) + (f" and {more} more" if more else "")
