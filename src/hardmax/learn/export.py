"""The model as an ONNX graph, with ties averaged by the library's own rule.

The ONNX operator named Hardmax marks the first maximum only; the graph here
compares every score with the largest one less the tolerance, and averages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hardmax._errors import MissingExtraError
from hardmax._types import Array, Bools
from hardmax.io import write_bytes
from hardmax.learn.model import HardmaxModel
from hardmax.tokens.batch import Tokens

__all__ = ["onnx_inputs", "onnx_model", "write_onnx"]

_OPSET = 17


def onnx_inputs(tokens: Tokens) -> dict[str, Array]:
    """Tokens as the inputs of the graph, filled up to one length.

    Returns
    -------
    dict
        "ids", "counts" and "sequence", each (b, n) int64: token numbers,
        multiplicities (0 where filled up), and the number of the sentence or text.
    """
    starts, sizes = tokens.starts, np.diff(tokens.starts)
    shape = (len(tokens), max(int(sizes.max(initial=0)), 1))
    real: Bools = np.arange(shape[1]) < sizes[:, None]
    sequence = np.repeat(np.arange(len(tokens.offsets) - 1), np.diff(tokens.offsets))
    out = {name: np.zeros(shape, dtype=np.int64) for name in ("ids", "counts", "sequence")}
    for name, values in (("ids", tokens.ids), ("counts", tokens.counts), ("sequence", sequence)):
        out[name][real] = values[: starts[-1]]
    return out


class _Graph:
    """Nodes of a graph, each named after its number."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def const(self, value: Any) -> str:
        """A constant tensor."""
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value), name))
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output."""
        from onnx import helper

        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name


def _head(
    g: _Graph, z: str, weights: str, seen: str, gamma: float, A: Array | None, tie_tol: float
) -> str:
    """One layer of one head: (b, n, d/h) -> the same."""
    last, row, low = g.const(np.array([2])), g.const(np.array([1])), g.const(-np.inf)
    turned = g.add("Transpose", z, perm=[0, 2, 1])
    asks = z if A is None else g.add("MatMul", z, g.const(A.T))
    scores = g.add("Where", seen, g.add("MatMul", asks, turned), low)
    size = g.add("Sqrt", g.add("ReduceSum", g.add("Mul", asks, asks), last, keepdims=1))
    lengths = g.add("Sqrt", g.add("ReduceSum", g.add("Mul", turned, turned), row, keepdims=1))
    reach = g.add("Where", seen, lengths, g.const(0.0))
    longest = g.add("ReduceMax", reach, axes=[2], keepdims=1)
    slack = g.add("Mul", g.add("Mul", size, longest), g.const(tie_tol))
    best = g.add("ReduceMax", scores, axes=[2], keepdims=1)
    chosen = g.add("GreaterOrEqual", scores, g.add("Sub", best, slack))
    chosen = g.add("Cast", g.add("And", chosen, seen), to=11)
    share = g.add("Mul", chosen, weights)
    total = g.add("Max", g.add("ReduceSum", share, last, keepdims=1), g.const(1e-300))
    mean = g.add("MatMul", g.add("Div", share, total), z)
    return g.add("Add", z, g.add("Mul", g.add("Sub", mean, z), g.const(gamma)))


def _body(g: _Graph, model: HardmaxModel) -> str:
    """From the inputs to the logits."""
    counts = g.add("Cast", "counts", to=11)
    column, row = g.const(np.array([2])), g.const(np.array([1]))
    real = g.add("Unsqueeze", counts, column)
    weights = g.add("Unsqueeze", counts, row)
    same = g.add(
        "Equal", g.add("Unsqueeze", "sequence", column), g.add("Unsqueeze", "sequence", row)
    )
    seen = g.add("And", same, g.add("Greater", weights, g.const(0.0)))
    E = g.const(model.E.detach().numpy())
    z = g.add("Cast", g.add("Gather", E, "ids"), to=11)
    z = g.add("Mul", z, g.add("Cast", g.add("Greater", real, g.const(0.0)), to=11))
    width = model.E.shape[1] // model.heads
    A, blocks = model.scores(), []
    for h, gamma in enumerate(model.gamma.tolist()):
        cut = [g.const(np.array([v])) for v in (h * width, (h + 1) * width, 2)]
        block = g.add("Slice", z, *cut)
        for _ in range(model.depth):
            mine = None if A is None else A[h]
            block = _head(g, block, weights, seen, gamma, mine, model.tie_tol)
        blocks.append(block)
    z = g.add("Concat", *blocks, axis=2) if len(blocks) > 1 else blocks[0]
    total = g.add("Max", g.add("ReduceSum", counts, row, keepdims=1), g.const(1.0))
    pooled = g.add("Div", g.add("ReduceSum", g.add("Mul", z, real), row, keepdims=0), total)
    decoded = g.add("MatMul", pooled, g.const(model.v.detach().numpy().T))
    return g.add("Add", decoded, g.const(model.b.detach().numpy()))


def onnx_model(model: HardmaxModel) -> Any:
    """The graph from "ids", "counts" and "sequence" to "logits" (b, outputs) in float64.

    Raises
    ------
    MissingExtraError
        If onnx is not installed.
    """
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError:
        raise MissingExtraError("onnx", "export") from None
    g = _Graph()
    logits = _body(g, model)
    g.nodes.append(helper.make_node("Identity", [logits], ["logits"]))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "n"])
        for name in ("ids", "counts", "sequence")
    ]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.DOUBLE, ["b", len(model.b)])]
    graph = helper.make_graph(g.nodes, "hardmax", inputs, outputs, g.constants)
    out = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], producer_name="hardmax"
    )
    out.ir_version = 8
    onnx.checker.check_model(out)
    return out


def write_onnx(model: HardmaxModel, path: Any, *, force: bool = False) -> Path:
    """Write `onnx_model` whole or not at all."""
    return write_bytes(path, onnx_model(model).SerializeToString(), force=force)
