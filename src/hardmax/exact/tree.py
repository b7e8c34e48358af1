"""The split tree: classes of sequences, and the tokens that tell them apart.

A node is a class P of sequences with mixed labels and an ordered list of tests
W_1, ..., W_r, sets of tokens.  A sequence goes to the first test whose set it
meets, else it stays; those that stay have one label.  Leaves are numbered from
0: the sequences that stay come first, then the child of the last test, and so
on, so the heights h_1 > ... > h_r >= 1 of the tests (what each adds to the
code) decrease, and a maximum over tokens finds the first test met.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hardmax._types import Array
from hardmax.exact._split import Index, Scratch, grow, inverted
from hardmax.exact.data import Corpus
from hardmax.exact.separate import PrecisionError

__all__ = ["Node", "Test", "Tree", "build_tree"]

Progress = Callable[[int, int], None]


@dataclass
class Test:
    """Sequences that hold one of `tokens` go to `child` (None: a leaf of one label)."""

    tokens: list[int]
    rooms: list[int]
    members: Array
    child: Node | None = None
    label: int = -1
    height: int = 0


@dataclass
class Node:
    """A class of sequences with its tests; `label` is that of the sequences that stay."""

    members: Array
    level: int
    tests: list[Test] = field(default_factory=list)
    label: int = -1
    base: int = 0
    leaves: int = 1


@dataclass
class Tree:
    """All nodes with tests, by level, and the label of every leaf code."""

    nodes: list[Node]
    leaf_labels: Array
    order: Array
    grid: Array

    @property
    def bumps(self) -> int:
        """Number of (class, token) pairs that are asked about."""
        return sum(len(t.tokens) for node in self.nodes for t in node.tests)

    @property
    def levels(self) -> int:
        """Number of levels: attention layers when every level fits into one block."""
        return 1 + max((node.level for node in self.nodes), default=-1)

    @property
    def changes(self) -> int:
        """Number of label changes from one code to the next."""
        return int(np.count_nonzero(np.diff(self.leaf_labels)))


class _Work:
    """The index of the sequences, and arrays that every node uses and leaves clean."""

    def __init__(self, corpus: Corpus, codes: Array, grid: Array, classes: int) -> None:
        size = len(corpus.table)
        self.order = np.argsort(grid, kind="stable")
        rank = np.empty(size, np.int32)
        rank[self.order] = np.arange(size, dtype=np.int32)
        rows = rank[corpus.rows]
        heads, owners = inverted(rows, corpus.starts, size)
        random = np.random.default_rng(classes).integers(1, 2**63, size=classes, dtype=np.uint64)
        keys = np.array([0, 1][:classes], np.uint64) if classes <= 2 else random
        self.codes = codes
        self.index = Index(rows, corpus.starts, heads, owners, codes, keys, grid[self.order])
        many = size if classes > 2 else 1
        self.scratch = Scratch(
            n=np.zeros(size, np.int32),
            sums=np.zeros(size, np.uint64),
            room=np.zeros(size, np.int64),
            mark=np.zeros(size, np.bool_),
            square=np.zeros(many),
            cross=np.zeros(many),
            inner=np.zeros(many, np.int64),
            stamp=np.zeros(many, np.int64),
            alive=np.zeros(corpus.size, np.bool_),
            place=np.zeros(corpus.size, np.int64),
        )

    def grow(self, members: Array, least: int, share: float) -> tuple[bool, Array, Array, Array]:
        """Tests of one class; see `_split.grow`."""
        done, test_of, tokens, tests = grow(members, self.index, self.scratch, least, share)
        return done, test_of, np.array(tokens, np.int64), np.array(tests, np.int64)


def build_tree(
    corpus: Corpus,
    codes: Array,
    grid: Array,
    *,
    least: int = 3,
    share: float = 0.02,
    progress: Progress | None = None,
) -> Tree:
    """Find the tests of every class.

    `grid` is the projection of every distinct token in integer units; a token
    is asked about only where no other token of the whole class lies closer
    than `least` units.  Raises `PrecisionError` where no such token splits.
    """
    classes = int(codes.max()) + 1
    work = _Work(corpus, codes, grid, classes)
    everything = np.argsort(codes, kind="stable")
    root = Node(everything, 0)
    waiting, nodes, solved = [root], [], 0
    while waiting:
        node = waiting.pop()
        if codes[node.members[0]] == codes[node.members[-1]]:
            node.label = int(codes[node.members[0]])
            continue
        _fill(node, work, least, share)
        nodes.append(node)
        waiting += [t.child for t in node.tests if t.child is not None]
        solved += len(node.members) - sum(len(t.child.members) for t in node.tests if t.child)
        if progress is not None:
            progress(solved, corpus.size)
    leaf_labels = _number(root)
    nodes.sort(key=lambda v: (v.level, v.base))
    return Tree(nodes, leaf_labels, work.order, grid)


def _fill(node: Node, work: _Work, least: int, share: float) -> None:
    codes, members = work.codes, node.members
    done, test_of, tokens, tests = work.grow(members, least, share)
    if not done:
        left = members[test_of < 0]
        other = left[codes[left] != codes[left[0]]][0]
        raise PrecisionError(
            f"sequences {left[0]} and {other} hold no token {least} grid steps away from the "
            f"others of {len(members)} sequences"
        )
    order = np.argsort(test_of, kind="stable")
    bounds = np.searchsorted(test_of[order], np.arange(-1, tests[-1] + 2))
    node.label = int(codes[members[order[0]]])
    for i in range(int(tests[-1]) + 1):
        part = np.sort(order[bounds[i + 1] : bounds[i + 2]])
        inside = members[part]
        gaps = [int(work.scratch.room[w]) for w in tokens[tests == i]]
        names = [int(work.order[w]) for w in tokens[tests == i]]
        label = int(codes[inside[0]])
        pure = label == codes[inside[-1]]
        last = node.tests[-1] if node.tests else None
        if pure and last is not None and last.child is None and last.label == label:
            last.tokens += names
            last.rooms += gaps
            last.members = np.concatenate([last.members, inside])
        elif pure:
            node.tests.append(Test(names, gaps, inside, None, label))
        else:
            node.tests.append(Test(names, gaps, inside, Node(inside, node.level + 1)))


def _number(root: Node) -> Array:
    """Heights and codes, without recursion: children before parents, then back."""
    order, stack = [], [root]
    while stack:
        node = stack.pop()
        order.append(node)
        stack += [t.child for t in node.tests if t.child is not None]
    for node in reversed(order):
        height = 1
        for test in reversed(node.tests):
            test.height = height
            height += 1 if test.child is None else test.child.leaves
        node.leaves = height
    labels = np.zeros(root.leaves, np.int64)
    for node in order:
        labels[node.base] = node.label
        for test in node.tests:
            if test.child is None:
                labels[node.base + test.height] = test.label
            else:
                test.child.base = node.base + test.height
    return labels
