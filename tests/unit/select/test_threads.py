"""Parts of a loop in threads cover every number once."""

from __future__ import annotations

import pytest
import torch

from hardmax.select.threads import in_threads, one_thread


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 7, 64, 1000])
def test_the_ranges_cover_every_number_once(n: int, threads: int) -> None:
    before, seen = torch.get_num_threads(), [0] * n

    def part(first: int, stop: int) -> None:
        for k in range(first, stop):
            seen[k] += 1

    try:
        torch.set_num_threads(threads)
        in_threads(part, n, 8)
    finally:
        torch.set_num_threads(before)
    assert seen == [1] * n


def test_an_error_in_a_part_is_not_lost() -> None:
    before = torch.get_num_threads()

    def part(first: int, stop: int) -> None:
        raise ZeroDivisionError("inside")

    try:
        torch.set_num_threads(2)
        with pytest.raises(ZeroDivisionError, match="inside"):
            in_threads(part, 100, 8)
    finally:
        torch.set_num_threads(before)


def test_the_number_of_threads_is_given_back_after_an_error() -> None:
    before, seen = torch.get_num_threads(), []

    def fail() -> None:
        with one_thread():
            seen.append(torch.get_num_threads())
            raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"):
        fail()
    assert [*seen, torch.get_num_threads()] == [1, before]
