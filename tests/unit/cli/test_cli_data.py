"""`hardmax data`: what it prints, and the one line of each mistake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from hardmax.cli import data
from hardmax.cli.main import Commands
from hardmax.learn import sources

Call = Callable[..., Result]
HEAD = "id\ttopic\tpart\tlabel\ttext\n"


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command alone, in an empty folder with an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARDMAX_CACHE", str(tmp_path / "cache"))
    app = typer.Typer(cls=Commands, pretty_exceptions_enable=False)
    app.callback()(lambda: None)
    data.register(app)

    def run(*args: str) -> Result:
        return CliRunner().invoke(app, ["data", *args], catch_exceptions=False)

    return run


def refused(result: Result) -> str:
    """The one line of a call that ends with status 2."""
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line


REVIEWS = 'review,stars\nGood film,1\n"open,1\nbad film,0\n,0\nGood film,1\n'


def test_check_says_columns_classes_and_problems_with_lines(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(REVIEWS)
    result = call("check", "a.csv")
    assert result.exit_code == 0
    words = " ".join(result.stdout.split())
    assert "'review' (guessed), label from column 'stars' (guessed)" in words
    assert "rows 5: 3 used, 2 skipped" in words
    assert "classes 0: 1, 1: 2" in words
    assert "quote 1 yes 3" in words
    assert "text empty 1 yes 5" in words
    assert "duplicate 1 no 6" in words


def test_check_gives_the_report_as_json(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(REVIEWS)
    report = json.loads(call("check", "a.csv", "--json", "--against", "a.csv").stdout)
    assert (report["rows"], report["used"], report["positive"]) == (5, 3, 1)
    assert report["classes"] == [{"label": 0, "count": 1}, {"label": 1, "count": 2}]
    quote = next(p for p in report["problems"] if p["kind"] == "quote")
    assert (quote["count"], quote["rows"]) == (1, ["a.csv:3"])
    assert (report["shared"]["texts"], report["shared"]["rows"]) == (2, 3)


def test_check_reads_columns_by_number_without_a_header(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1\tgood\n0\tbad\n")
    result = call("check", "a.txt", "--text", "1", "--label", "0", "--delimiter", "tab")
    assert "2 used" in result.stdout
    assert "text from column 1" in result.stdout


def test_check_of_one_class_prints_the_report_and_ends_with_two(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\na,x\nb,x\n")
    result = call("check", "a.csv")
    assert "one class" in result.stdout
    assert "expected two or more labels, got only 'x'" in refused(result)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("check", "none.csv"), "none.csv: no such file"),
        (("check", "a.csv", "--text", "revieww"), "Did you mean 'review'?"),
        (("check", "a.csv", "--label", "x"), "got the columns 'review', 'stars'"),
        (("check", "a.csv", "--encoding", "klingon"), "name of a text encoding"),
        (("check", "a.csv", "--delimiter", "ab"), "one character as delimiter"),
        (("check", "a.csv", "--against", "b.csv"), "b.csv: no such file"),
        (("check",), "Missing argument"),
        (("imdb", "--from", "none.csv"), "none.csv: no such file"),
        (("imdb", "--from", "a.csv"), "expected the file of 66212309 bytes"),
        (("imdb", "--split", "half", "--from", "a.csv"), "Invalid value for '--split'"),
        (("imdb", "--cache", "a.csv", "--from", "a.csv"), "cannot be created"),
    ],
)
def test_each_mistake_is_one_line(
    call: Call, tmp_path: Path, args: tuple[str, ...], message: str
) -> None:
    (tmp_path / "a.csv").write_text(REVIEWS)
    assert message in refused(call(*args))


def test_a_file_that_is_refused_leaves_nothing_in_the_cache(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(REVIEWS)
    refused(call("imdb", "--from", "a.csv"))
    assert list((tmp_path / "cache" / "imdb").iterdir()) == []


def test_corpus_says_where_and_how_many(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "corpus" / "reviews.tsv"
    place.parent.mkdir()
    rows = "1\tfilm\ttrain\tpos\tGood.\n2\tapp\ttest\tneg\tBad.\n3\tapp\ttrain\tneg\tBad.\n"
    place.write_text(HEAD + rows)
    monkeypatch.setattr(sources, "package_files", lambda package: tmp_path)
    words = " ".join(call("corpus").stdout.split())
    assert str(place) in words.replace(" ", "")
    assert "train neg: 1, pos: 1" in words
    assert "topics app: 2, film: 1" in words
    told = json.loads(call("corpus", "--json").stdout)
    assert told["parts"] == {"train": {"pos": 1, "neg": 1}, "test": {"neg": 1}}


def test_the_group_alone_shows_its_commands(call: Call) -> None:
    result = call()
    assert result.exit_code == 0
    assert all(name in result.stdout for name in ("imdb", "check", "corpus"))


def test_imdb_tells_both_parts_of_the_split(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tests.unit.learn.test_data_sources import MADE

    (tmp_path / "a.csv").write_bytes(MADE.csv)
    monkeypatch.setattr(sources, "IMDB", MADE.release)
    monkeypatch.setattr("hardmax.learn._fetch_imdb.IMDB", MADE.release)
    result = call("imdb", "--from", "a.csv", "--split", "paper")
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    assert "train 28 rows" in words
    assert "test 12 rows" in words
    told = json.loads(call("imdb", "--json").stdout)
    assert told["origin"] == "cache"
    assert (told["parts"]["train"]["rows"], told["parts"]["test"]["positive"]) == (20, 10)


def test_the_papers_split_brings_nouns_and_says_when_they_cannot_be_had(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from hardmax._errors import DataError
    from tests.unit.learn.test_data_sources import MADE

    (tmp_path / "a.csv").write_bytes(MADE.csv)
    monkeypatch.setattr(sources, "IMDB", MADE.release)
    monkeypatch.setattr("hardmax.learn._fetch_imdb.IMDB", MADE.release)
    asked: list[object] = []

    def fetch(cache: object, progress: object) -> None:
        asked.append(cache)
        if len(asked) == 2:
            raise DataError("WordNet's nouns could not be fetched: no network.")

    monkeypatch.setattr("hardmax.learn.wordnet.fetch_wordnet", fetch)
    assert call("imdb", "--from", "a.csv", "--split", "paper").exit_code == 0
    assert call("imdb").exit_code == 0
    assert asked == []  # a file was given; the official split needs none
    assert json.loads(call("imdb", "--split", "paper", "--json").stdout)["notes"] == []
    result = call("imdb", "--split", "paper")
    assert result.exit_code == 0
    assert "nouns could not be fetched: no network." in " ".join(result.stderr.split())
