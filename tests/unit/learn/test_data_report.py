"""What a report says of the classes, and what two sources share."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardmax.learn.data import overlap, positive_label, read_texts
from tests.unit.learn.test_data_read import table


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (["positive", "negative"], "positive"),
        (["Pos", "neg"], "Pos"),
        ([0, 1], 1),
        ([-1, 1], 1),
        ([4, 2], 4),
        ([0, -1], 0),
        (["false", "true"], "true"),
        (["negative", "other"], "other"),
        (["zebra", "bad"], "zebra"),
        (["ham", "spam"], "spam"),
        (["yes", "no"], "yes"),
    ],
)
def test_the_positive_label_follows_the_documented_rule(
    labels: list[str | int], positive: str | int
) -> None:
    assert positive_label(labels)[0] == positive
    assert positive_label(labels[::-1]) == positive_label(labels)


def test_the_report_says_the_classes_and_why_one_is_positive(tmp_path: Path) -> None:
    report = read_texts(table(tmp_path / "a.csv", [("a", "neg"), ("bcd", "pos")])).report
    assert [(entry.label, entry.count) for entry in report.classes] == [("neg", 1), ("pos", 1)]
    assert (report.positive, report.positive_rule) == (
        "pos",
        "'pos' is a name of the positive class",
    )
    assert report.lengths is not None
    assert (report.lengths.shortest, report.lengths.mean, report.lengths.longest) == (1, 2.0, 3)


def test_overlap_counts_with_multiplicity_and_names_rows(tmp_path: Path) -> None:
    first = table(tmp_path / "a.csv", [("x", "0"), ("x", "1"), ("x", "0"), ("y", "1"), ("z", "0")])
    second = table(tmp_path / "b.csv", [("w", "0"), ("x", "1"), ("y", "0"), ("x", "1"), ("y", "1")])
    one, two = read_texts(first), read_texts(second)
    shared = overlap(one, two)
    assert (shared.texts, shared.pairs, shared.rows) == (2, 3, 4)
    assert [place.rpartition(":")[2] for place in shared.places] == ["3", "4", "5", "6"]
    plain = overlap(one.load()[0], two.load()[0])
    assert (plain.texts, plain.pairs, plain.rows) == (2, 3, 4)
    assert plain.places[0] == "row 2"


@given(
    st.lists(st.sampled_from("abcdef"), min_size=1), st.lists(st.sampled_from("cdefgh"), min_size=1)
)
def test_overlap_is_the_intersection_of_multisets(first: list[str], second: list[str]) -> None:
    shared = overlap(first, second)
    assert shared.pairs == sum((Counter(first) & Counter(second)).values())
    assert shared.texts == len(set(first) & set(second))
    assert shared.rows == sum(text in set(first) for text in second)
