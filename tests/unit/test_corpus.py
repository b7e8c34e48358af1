"""The review corpus: its counts, its balance, its parts, and that no two reviews say the same."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from importlib import resources

import pytest

TOPICS = ("films", "books", "meals", "hotels", "apps")
LABELS = ("negative", "positive")
CELL = 125  # reviews per topic and label
TEST = 25  # of them in the test part

Row = dict[str, str]


@pytest.fixture(scope="module")
def raw() -> bytes:
    return (resources.files("hardmax.corpus") / "reviews.tsv").read_bytes()


@pytest.fixture(scope="module")
def rows(raw: bytes) -> list[Row]:
    names, *lines = (line.split("\t") for line in raw.decode("utf-8").rstrip("\n").split("\n"))
    return [dict(zip(names, line, strict=True)) for line in lines]


def _words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def _sentences(text: str) -> set[str]:
    return {" ".join(_words(part)) for part in re.split(r"(?<=[.!?])[\"']?\s+", text)}


def test_the_header_and_the_fields(raw: bytes, rows: list[Row]) -> None:
    assert raw.startswith(b"id\ttopic\tpart\tlabel\ttext\n")
    assert raw.endswith(b"\n")
    assert not raw.endswith(b"\n\n")
    assert {row["topic"] for row in rows} == set(TOPICS)
    assert {row["label"] for row in rows} == set(LABELS)
    assert {row["part"] for row in rows} == {"train", "test"}


def test_the_ids_count_up(rows: list[Row]) -> None:
    assert [row["id"] for row in rows] == [f"r{i:04d}" for i in range(1, len(rows) + 1)]


def test_as_many_reviews_of_each_topic_and_label(rows: list[Row]) -> None:
    assert len(rows) == CELL * len(TOPICS) * len(LABELS)
    counts = Counter((row["topic"], row["label"]) for row in rows)
    assert counts == {(topic, label): CELL for topic in TOPICS for label in LABELS}


def test_a_fifth_of_each_topic_and_label_is_the_test_part(rows: list[Row]) -> None:
    held = Counter((row["topic"], row["label"]) for row in rows if row["part"] == "test")
    assert held == {(topic, label): TEST for topic in TOPICS for label in LABELS}
    assert 5 * sum(held.values()) == len(rows)


def test_the_test_part_is_every_fifth_review_of_its_topic_and_label(rows: list[Row]) -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for row in rows:
        cell = row["topic"], row["label"]
        seen[cell] += 1
        assert (row["part"] == "test") == (seen[cell] % 5 == 0), row["id"]


def test_no_review_occurs_twice(rows: list[Row]) -> None:
    assert len({" ".join(_words(row["text"])) for row in rows}) == len(rows)


def test_no_sentence_occurs_in_two_reviews(rows: list[Row]) -> None:
    counts = Counter(sentence for row in rows for sentence in _sentences(row["text"]))
    assert [sentence for sentence, count in counts.items() if count > 1] == []


def test_no_six_words_in_a_row_are_shared_by_more_than_four_reviews(rows: list[Row]) -> None:
    counts: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        words = _words(row["text"])
        counts.update({tuple(words[i : i + 6]) for i in range(len(words) - 5)})
    assert [" ".join(run) for run, count in counts.items() if count > 4] == []


def test_the_lengths(rows: list[Row]) -> None:
    lengths = [len(row["text"].split()) for row in rows]
    assert min(lengths) >= 8
    assert max(lengths) <= 120
    assert sum(20 <= length <= 60 for length in lengths) > len(rows) / 2


def test_the_openings_differ(rows: list[Row]) -> None:
    openings = Counter(tuple(_words(row["text"])[:2]) for row in rows)
    assert len(openings) > len(rows) / 2
    assert max(openings.values()) < len(rows) / 50


def test_the_characters(rows: list[Row]) -> None:
    for row in rows:
        text = row["text"]
        assert text == " ".join(text.split()), row["id"]
        for char in text:
            accented = unicodedata.category(char) in ("Ll", "Lu") and ord(char) < 0x180
            assert " " <= char <= "~" or accented, (row["id"], char)
