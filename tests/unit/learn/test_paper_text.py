"""The recipe's words and numbers, its nouns, and the order of its draws."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest
import torch

from hardmax._errors import DataError
from hardmax.learn import wordnet
from hardmax.learn.paper import PaperModel, PaperSettings
from hardmax.learn.paper_text import guessed_lemmas, noun_lemmas, paper_table, paper_words


def test_words_keep_their_case_and_tags_glue_their_neighbours() -> None:
    text = "The film<br />was goooood, 10/10! see http://x.org the end"
    assert paper_words(text) == ["The", "filmwas", "good", "see", "end"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't didn't it's won't", []),  # the pieces are stop words
        ("Don't cannot Cannot gonna", ["Don", "Can", "gon", "na"]),
        ("a b2b caf\u00e9 na\u00efve", ["bb", "caf", "nave"]),  # no blank is left
        ("one-two...three", ["one", "two", "three"]),
        ("not very good", ["good"]),
        ("www.film.com is mmmmm", ["mm"]),
    ],
)
def test_corners_of_the_recipe(text: str, words: list[str]) -> None:
    assert paper_words(text) == words


def test_nouns_are_reduced_as_wordnet_does() -> None:
    nouns = frozenset({"movie", "wolf", "wa", "man", "boss", "bos", "class", "child", "box"})
    lemma = noun_lemmas(nouns, {"children": ["child"], "axes": ["axis"]})
    assert [lemma(w) for w in ("movies", "wolves", "was", "men", "children", "boxes")] == [
        "movie", "wolf", "wa", "man", "child", "box",
    ]  # fmt: skip
    assert lemma("boss") == "bos"  # the shortest wins, right or wrong
    assert lemma("Movies") == "Movies"  # a dictionary in lower case
    assert lemma("axes") == "axes"  # irregular, and its noun is unknown
    assert lemma("classss") == "class"  # endings come off again and again


def test_without_a_dictionary_endings_come_off_where_the_shorter_word_occurs() -> None:
    lemma = guessed_lemmas([["movie"] * 3 + ["movies", "glass", "glas", "glas", "glas", "us"]])
    assert [lemma(w) for w in ("movies", "glass", "us", "actors")] == [
        "movie", "glass", "us", "actors",
    ]  # fmt: skip


def test_stop_words_go_before_and_after_the_nouns_are_reduced() -> None:
    assert paper_words("the ass was great", noun_lemmas(frozenset({"as"}), {})) == ["great"]


def test_numbers_follow_counts_then_appearance_and_rows_are_cut_or_filled() -> None:
    table = paper_table([["z", "b", "a", "b"], ["a", "b"]], length=3)
    assert table.words == ("<PAD>", "b", "a", "z")
    assert table.ids.tolist() == [[3, 1, 2], [2, 1, 0]]
    assert table.size == 4


def test_weights_are_drawn_in_the_order_of_torch_modules() -> None:
    torch.manual_seed(0)
    table = torch.nn.Embedding(50, 2)
    alpha = torch.nn.init.uniform_(torch.empty(1))
    head = torch.nn.Linear(2, 1)
    model = PaperModel(50, PaperSettings(), seed=0)
    assert torch.equal(model.E, table.weight)
    assert torch.equal(model.alpha, alpha)
    assert torch.equal(model.v, head.weight[0])
    assert torch.equal(model.b, head.bias)


def test_a_file_that_is_not_the_right_one_is_not_taken_for_wordnet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wordnet.wordnet_lemmas(tmp_path) is None
    folder = tmp_path / "wordnet"
    folder.mkdir()
    index = gzip.compress(json.dumps({"noun": ["film", "up"]}).encode())
    irregular = gzip.compress(json.dumps({"noun": {"feet": ["foot"]}}).encode())
    sums = {}
    for name, data in (("en_lemma_index.json.gz", index), ("en_lemma_exc.json.gz", irregular)):
        (folder / name).write_bytes(data)
        sums[name] = hashlib.sha256(data).hexdigest()
    assert wordnet.wordnet_lemmas(tmp_path) is None
    monkeypatch.setattr(wordnet, "_SUMS", sums)
    lemma = wordnet.wordnet_lemmas(tmp_path)
    assert lemma is not None
    assert [lemma("films"), lemma("ups")] == ["film", "ups"]  # "up" is no noun of WordNet


def test_a_package_without_the_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import zipfile

    def wheel(package: str, place: Path, size: int, progress: object) -> Path:
        with zipfile.ZipFile(place / "x.whl", "w") as archive:
            archive.writestr("spacy_lookups_data/data/en_lemma_index.json.gz", b"other")
        return place / "x.whl"

    monkeypatch.setattr(wordnet, "download_wheel", wheel)
    with pytest.raises(DataError, match="is not the file expected"):
        wordnet.fetch_wordnet(tmp_path)
