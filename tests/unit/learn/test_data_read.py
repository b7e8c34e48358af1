"""Texts and labels out of every format, and what is wrong with their rows."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import tarfile
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardmax import HardmaxError
from hardmax._errors import DataError, InputError
from hardmax.learn.data import TextReport, read_texts

Rows = Sequence[tuple[str, ...]]
ROWS = [("a fine film", "pos"), ('dull, and "long"', "neg"), ("two\nlines", "pos")]
TEXTS, LABELS = [text for text, _ in ROWS], [label for _, label in ROWS]


def table(
    path: Path, rows: list[tuple[str, ...]], head: str = "text,label", mark: str = ","
) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(head + "\n")
        csv.writer(file, delimiter=mark, lineterminator="\n").writerows(rows)
    return path


def raw(tmp_path: Path, data: bytes, name: str = "raw.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def tree(root: Path, names: list[str]) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"text of {name}", encoding="utf-8")
    return root


def rows_of(report: TextReport, kind: str) -> list[str]:
    problem = report.problem(kind)
    return [] if problem is None else [row.rpartition(":")[2] for row in problem.rows]


def pack(kind: str, path: Path, members: dict[str, bytes]) -> Path:
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return path
    with tarfile.open(path, f"w:{kind}") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


PACKED = [("zip", "a.zip"), ("gz", "a.tar.gz"), ("xz", "a.tar.xz"), ("", "a.tar"), ("gz", "a.tgz")]
IMDB = {
    "aclImdb/README": b"not a review",
    "aclImdb/imdbEr.txt": b"1.0",
    "aclImdb/train/urls_pos.txt": b"a list",
    "aclImdb/train/pos/0_9.txt": "très bon".encode(),
    "aclImdb/train/neg/0_2.txt": b"bad",
    "aclImdb/train/unsup/0_0.txt": b"unknown",
    "aclImdb/test/pos/0_8.txt": b"good",
    "aclImdb/test/neg/0_1.txt": b"worse",
}


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.tsv", "\t"), ("b.csv", ";")])
def test_tables_give_their_rows_with_quotes_and_line_ends(
    tmp_path: Path, name: str, mark: str
) -> None:
    path = table(tmp_path / name, ROWS, head=f"text{mark}label", mark=mark)
    assert read_texts(path).load() == (TEXTS, LABELS)


def test_json_lines_give_their_rows(tmp_path: Path) -> None:
    lines = [json.dumps({"label": label, "text": text}) for text, label in ROWS]
    path = raw(tmp_path, "\n".join(lines).encode(), "a.jsonl")
    assert read_texts(path).load() == (TEXTS, LABELS)


@pytest.mark.parametrize(
    ("ending", "squeeze"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]
)
def test_a_compressed_table_reads_as_the_table(
    tmp_path: Path, ending: str, squeeze: Callable[[bytes], bytes]
) -> None:
    plain = table(tmp_path / "a.csv", ROWS)
    packed = raw(tmp_path, squeeze(plain.read_bytes()), f"a.csv{ending}")
    assert read_texts(packed).load() == read_texts(plain).load()


@pytest.mark.parametrize(("kind", "name"), PACKED)
def test_an_archive_of_one_table_reads_as_the_table(tmp_path: Path, kind: str, name: str) -> None:
    plain = table(tmp_path / "a.csv", ROWS)
    members = {"deep/a.csv": plain.read_bytes(), "__MACOSX/._a.csv": b"x", "notes.md": b"y"}
    assert read_texts(pack(kind, tmp_path / name, members)).load() == (TEXTS, LABELS)


@pytest.mark.parametrize(("kind", "name"), PACKED)
def test_the_imdb_layout_gives_folder_names_as_labels(tmp_path: Path, kind: str, name: str) -> None:
    source = read_texts(pack(kind, tmp_path / name, IMDB), part="train")
    assert source.load() == (["très bon", "bad"], ["pos", "neg"])
    assert any("1 texts without a label" in note for note in source.report.notes)


def test_a_folder_reads_as_its_archive(tmp_path: Path) -> None:
    for name, data in IMDB.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    folder = Counter(zip(*read_texts(tmp_path / "aclImdb").load(), strict=True))
    packed = read_texts(pack("zip", tmp_path / "a.zip", IMDB))
    assert folder == Counter(zip(*packed.load(), strict=True))
    assert sum(folder.values()) == 4
    assert any("train and test were read together" in note for note in packed.report.notes)


def test_any_folder_name_is_a_label(tmp_path: Path) -> None:
    root = tree(tmp_path / "set", ["sad/1.txt", "glad/1.txt", "mixed/1.txt", "about.txt"])
    report = read_texts(root).report
    assert [entry.label for entry in report.classes] == ["glad", "mixed", "sad"]
    assert report.positive is None


def test_a_source_can_be_read_twice_and_in_batches_of_any_size(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [(f"text {k}", f"c{k % 3}") for k in range(50)])
    source = read_texts(path)
    whole = source.load()
    for size in (1, 7, 50, 1000):
        batches = list(source.batches(size))
        assert all(len(texts) <= size for texts, _ in batches)
        assert ([t for b in batches for t in b[0]], [y for b in batches for y in b[1]]) == whole
    with pytest.raises(InputError, match="at least 1"):
        next(source.batches(0))


def test_reading_holds_no_more_than_a_few_rows(tmp_path: Path) -> None:
    text = "word " * 2000
    path = table(tmp_path / "a.csv", [(f"{k} {text}", "ab"[k % 2]) for k in range(1000)])
    source = read_texts(path)
    tracemalloc.start()
    seen = sum(len(texts) for texts, _ in source.batches(10))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == 1000
    assert path.stat().st_size > 10_000_000
    assert peak < 3_000_000


@pytest.mark.parametrize(
    ("head", "text", "label"),
    [
        ("review,sentiment", "review", "sentiment"),
        ("Label,Sentence", "Sentence", "Label"),
        ("id,Review Text,star_rating,Rating", "Review Text", "Rating"),
        ("stars,comment", "comment", "stars"),
        ("words,class", "words", "class"),
        ("text,kind", "text", "kind"),
    ],
)
def test_columns_are_guessed_and_the_guess_is_said(
    tmp_path: Path, head: str, text: str, label: str
) -> None:
    names = head.split(",")
    rows = [tuple(f"{name} {k}" for name in names) for k in range(2)]
    source = read_texts(table(tmp_path / "a.csv", rows, head=head))
    assert source.columns is not None
    assert (source.columns.text, source.columns.label) == (text, label)
    assert source.report.columns == (
        f"text from column '{text}' (guessed), label from column '{label}' (guessed)"
    )


def test_named_columns_are_not_called_guessed(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [("x", "y", "z"), ("u", "v", "w")], head="text,label,other")
    source = read_texts(path, text="other", label="text")
    assert source.load() == (["z", "w"], ["x", "u"])
    assert "guessed" not in source.report.columns


def test_columns_given_as_numbers_mean_no_header_line(tmp_path: Path) -> None:
    path = raw(tmp_path, b"1\tgood\n0\tbad\n", "a.tsv")
    assert read_texts(path, text=1, label=0).load() == (["good", "bad"], [1, 0])
    with pytest.raises(DataError, match="columns 0 to 1"):
        read_texts(path, text=1, label=2)


def test_a_missing_column_names_the_columns_and_near_misses(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ROWS, head="Review,Sentiment")
    with pytest.raises(DataError, match=r"'Review', 'Sentiment'\. Did you mean 'Sentiment'\?"):
        read_texts(path, label="sentimnt")
    with pytest.raises(InputError, match="both column 'Review'"):
        read_texts(path, text="Review", label="Review")
    bare = table(tmp_path / "b.csv", [("a", "b", "c")], head="x,y,z")
    with pytest.raises(DataError, match=r"a column for the text, .* got 'x', 'y', 'z'"):
        read_texts(bare)
    with pytest.raises(DataError, match=r"there 2 times"):
        read_texts(table(tmp_path / "c.csv", [("a", "b", "c")], head="text,text,label"))


def test_bad_rows_are_skipped_and_counted_with_their_lines(tmp_path: Path) -> None:
    data = (
        b'text,label\ngood,1\n"two\nlines",0\nfine\xff,0\n  ,1\nokay,\na,b,c\nnul\0,1\nalone\n'
        b"good,0\nodd,x\n\ngood,1\n"
    )
    report = read_texts(raw(tmp_path, data), classes=[0, 1]).report
    assert rows_of(report, "encoding") == ["5"]
    assert rows_of(report, "text empty") == ["6"]
    assert rows_of(report, "label missing") == ["7"]
    assert rows_of(report, "ragged") == ["8", "10"]
    assert rows_of(report, "nul") == ["9"]
    assert rows_of(report, "label unknown") == ["12"]
    assert rows_of(report, "duplicate") == ["11", "14"]
    assert rows_of(report, "other label") == ["2", "11", "14"]
    assert (report.rows, report.used, report.skipped) == (11, 4, 7)
    assert all(
        problem.rows[0].startswith(f"{tmp_path / 'raw.csv'}:") for problem in report.problems
    )


def test_an_open_quote_spoils_its_line_only(tmp_path: Path) -> None:
    rows = [f'"text {k}",{k % 2}' for k in range(40)]
    rows[10] = '"never closed,1'
    source = read_texts(raw(tmp_path, "\n".join(["text,label", *rows]).encode()))
    texts, _ = source.load()
    assert texts == [f"text {k}" for k in range(40) if k != 10]
    assert rows_of(source.report, "quote") == ["12"]


def test_an_open_quote_at_the_end_is_counted(tmp_path: Path) -> None:
    report = read_texts(raw(tmp_path, b'text,label\na,1\nb,0\n"cut of')).report
    assert rows_of(report, "quote") == ["4"]
    assert report.used == 2


def test_a_tsv_that_does_not_quote_keeps_its_quotes(tmp_path: Path) -> None:
    texts = ['"Fine" is the word', "plain", '"So" and "so"', '"all of it"', 'open "']
    lines = [f"{text}\t{k % 2}" for k, text in enumerate(texts)]
    source = read_texts(raw(tmp_path, "\n".join(["text\tlabel", *lines]).encode(), "a.tsv"))
    assert source.load()[0] == texts
    assert any("not quoted" in note for note in source.report.notes)


def test_a_tsv_that_quotes_loses_them_and_only_the_spoiled_row(tmp_path: Path) -> None:
    lines = [f'"say ""{k}""\tnow"\t{k % 2}' for k in range(9)] + ['"open\t1', '"last"\t0']
    source = read_texts(raw(tmp_path, "\n".join(["text\tlabel", *lines]).encode(), "a.tsv"))
    assert source.load()[0] == [*(f'say "{k}"\tnow' for k in range(9)), "last"]
    assert rows_of(source.report, "quote") == ["11"]


def test_many_open_quotes_end_in_one_line_and_not_in_endless_work(tmp_path: Path) -> None:
    line = b'x",",' + b"y" * 100_000 + b"\n"
    with pytest.raises(DataError, match="quotes that close"):
        _ = read_texts(raw(tmp_path, b"text,label\n" + b'a,",\n' + line * 200)).report


def test_a_cell_beyond_the_csv_limit_is_read_and_the_limit_stays(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    long = "x" * (before + 10)
    path = table(tmp_path / "a.csv", [("a", "0"), (long, "1"), ("b", "0")])
    assert read_texts(path).load() == (["a", long, "b"], [0, 1, 0])
    assert csv.field_size_limit() == before


def test_few_places_are_named_and_all_are_counted(tmp_path: Path) -> None:
    report = read_texts(
        table(tmp_path / "a.csv", [("t", "a"), ("u", "b")] + [("", "a")] * 99)
    ).report
    problem = report.problem("text empty")
    assert problem is not None
    assert (problem.count, len(problem.rows), problem.skipped) == (99, 5, True)


def test_json_lines_count_what_is_no_object_or_has_no_text(tmp_path: Path) -> None:
    lines = [
        b'{"text": "a", "label": 1}',
        b"{broken",
        b"[1, 2]",
        b'{"text": 5, "label": 1}',
        b'{"label": 1}',
        b'{"text": "b"}',
        b'{"text": "c", "label": null}',
        b'{"text": "d\xff", "label": 0}',
        b'{"text": "\\ud800", "label": 0}',
        b"[" * 5000,
        b"",
        b'{"text": "e", "label": 0.0}',
        b'{"text": "f", "label": true}',
    ]
    source = read_texts(raw(tmp_path, b"\n".join(lines), "a.jsonl"))
    assert source.load() == (["a", "e", "f"], [1, 0, 1])
    report = source.report
    assert rows_of(report, "json") == ["2", "3", "10"]
    assert rows_of(report, "text missing") == ["4", "5"]
    assert rows_of(report, "label missing") == ["6", "7"]
    assert rows_of(report, "encoding") == ["8", "9"]


def test_one_class_is_reported_and_refused_on_request(tmp_path: Path) -> None:
    report = read_texts(table(tmp_path / "a.csv", [("a", "x"), ("b", "x")])).report
    assert report.problem("one class") is not None
    with pytest.raises(DataError, match="got only 'x' in 2 rows"):
        report.require_classes()


def test_no_usable_row_is_an_error_that_says_why(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [("", "x"), ("a", "")])
    with pytest.raises(DataError, match=r"1 text empty \(.*:2\), 1 label missing \(.*:3\)"):
        read_texts(path).load()


def test_a_label_column_with_a_value_per_row_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [("text", f"id{k}") for k in range(1500)])
    with pytest.raises(DataError, match=r":1002: expected labels of at most 1000 classes"):
        read_texts(path).load()


def test_labels_are_numbers_only_when_all_are(tmp_path: Path) -> None:
    whole = table(tmp_path / "a.csv", [("a", "1"), ("b", "-2"), ("c", " 3.0 ")])
    assert read_texts(whole).load()[1] == [1, -2, 3]
    mixed = table(tmp_path / "b.csv", [("a", "1"), ("b", "two")])
    assert read_texts(mixed).load()[1] == ["1", "two"]
    late = table(tmp_path / "c.csv", [("a", str(k % 2)) for k in range(1000)] + [("b", "two")])
    assert rows_of(read_texts(late).report, "label unknown") == ["1002"]


def test_texts_without_labels_are_read_alone(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [("a",), ("b",)], head="text")
    with pytest.raises(DataError, match="a column for the label"):
        read_texts(path)
    assert read_texts(path, labelled=False).load() == (["a", "b"], [None, None])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_byte_order_marks_are_understood(tmp_path: Path, encoding: str) -> None:
    path = raw(tmp_path, "text,label\nnaïve — oui,1\nnon,0\n".encode(encoding))
    assert read_texts(path).load() == (["naïve — oui", "non"], [1, 0])


def test_another_encoding_is_read_when_named(tmp_path: Path) -> None:
    path = raw(tmp_path, "text,label\ntrès,1\nété,0\nplain,1\n".encode("latin-1"))
    assert rows_of(read_texts(path).report, "encoding") == ["2", "3"]
    assert read_texts(path, encoding="latin-1").load()[0] == ["très", "été", "plain"]
    with pytest.raises(InputError, match="text encoding, got 'klingon'"):
        read_texts(path, encoding="klingon")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", b"", "an empty file"),
        ("a.csv", b"PK\x03\x04....", "got a zip archive"),
        ("a.jsonl", b'[{"text": "a"}]', "got a list"),
        ("a.jsonl", b"plain words", "got other text"),
        ("a.doc", b"words", r"ends in one of"),
        ("a.csv.gz", b"plain", "damaged or cut off"),
        ("a.zip", b"plain", "damaged or cut off"),
        ("a.tar.xz", b"plain", "damaged or cut off"),
        ("a.tar", b"", "damaged or cut off"),
        ("a.csv", b'text,"label\n', ":1: expected a header line"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        _ = read_texts(raw(tmp_path, data, name)).report
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_without_labels_are_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_texts(tmp_path / "none.csv")
    with pytest.raises(DataError, match="folders named by their label"):
        read_texts(tree(tmp_path / "flat", ["a.txt", "b.txt"]))
    with pytest.raises(DataError, match="a folder 'train' inside"):
        read_texts(tree(tmp_path / "set", ["pos/a.txt", "neg/b.txt"]), part="train")


def test_one_of_several_tables_is_chosen_by_part(tmp_path: Path) -> None:
    data = table(tmp_path / "a.csv", ROWS).read_bytes()
    path = pack("zip", tmp_path / "a.zip", {"train.csv": data, "test.csv": b"text,label\na,b\n"})
    assert read_texts(path, part="test").load() == (["a"], ["b"])
    with pytest.raises(DataError, match=r"got 2 of 2: train\.csv, test\.csv"):
        read_texts(path)


def test_iterating_and_loading_agree(tmp_path: Path) -> None:
    source = read_texts(table(tmp_path / "a.csv", ROWS))
    assert [text for texts, _ in source for text in texts] == source.load()[0]


cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


@given(st.lists(st.tuples(cells, st.sampled_from(["pos", "neg", "other"])), min_size=1, max_size=8))
def test_any_text_survives_a_table(tmp_path_factory: pytest.TempPathFactory, rows: Rows) -> None:
    path = table(tmp_path_factory.mktemp("t") / "a.csv", rows)
    kept = [(text, label) for text, label in rows if text.strip()]
    if not kept:
        with pytest.raises(HardmaxError, match="none in"):
            read_texts(path).load()
        return
    texts, labels = read_texts(path).load()
    assert list(zip(texts, labels, strict=True)) == kept
