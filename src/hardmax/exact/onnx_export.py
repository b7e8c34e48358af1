"""The network as an ONNX graph: input "tokens" (n, d), output "final" (n, d)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardmax._errors import MissingExtraError
from hardmax._types import Array
from hardmax.exact.layers import Attention, FeedForward
from hardmax.io import write_bytes

if TYPE_CHECKING:
    from hardmax.exact.network import Network

__all__ = ["onnx_bytes", "write_onnx"]

_OPSET = 17


def write_onnx(network: Network, path: Path, *, force: bool = False) -> Path:
    """Write the graph of `network`."""
    write_bytes(path, onnx_bytes(network), force=force)
    return path


class _Graph:
    """Nodes and constants, named as they come."""

    def __init__(self, onnx: Any, dtype: Any) -> None:
        self.helper, self.onnx, self.dtype = onnx.helper, onnx, dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """A stored array of the float type of the network."""
        name = f"c{len(self.constants)}"
        array = np.asarray(value, dtype=self.dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def whole(self, value: Any) -> str:
        """A stored integer, or a list of them, as an axis is."""
        name = f"c{len(self.constants)}"
        array = np.array(value, dtype=np.int64)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, kind: str, *inputs: str, **settings: Any) -> str:
        """One node; its output."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, list(inputs), [name], **settings))
        return name

    def dot(self, z: str, weight: Array) -> str:
        """z W^T."""
        return self.add("MatMul", z, self.constant(np.asarray(weight).T))


def onnx_bytes(network: Network) -> bytes:
    """The serialised model."""
    try:
        import onnx
    except ImportError:
        raise MissingExtraError("onnx", "export") from None
    g = _Graph(onnx, network.dtype)
    z = "tokens" if network.source.step is None else _positions(g, network.source.step)
    for layer in network.layers:
        if isinstance(layer, FeedForward):
            z = _feed(g, layer, z, network.dim)
        elif not layer.idle:
            z = _attend(g, layer, z, network.dim)
    g.nodes.append(onnx.helper.make_node("Identity", [z], ["final"]))
    kind = onnx.helper.np_dtype_to_tensor_dtype(network.dtype)
    shape = ["n", network.dim]
    graph = onnx.helper.make_graph(
        g.nodes,
        "hardmax",
        [onnx.helper.make_tensor_value_info("tokens", kind, shape)],
        [onnx.helper.make_tensor_value_info("final", kind, shape)],
        g.constants,
    )
    opset = [onnx.helper.make_opsetid("", _OPSET)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _positions(g: _Graph, step: Array) -> str:
    """tokens + i step for the i-th token."""
    many = g.add("Gather", g.add("Shape", "tokens"), g.whole(0))
    place = g.add("Cast", g.add("Range", g.whole(0), many, g.whole(1)), to=_kind(g))
    column = g.add("Unsqueeze", place, g.whole([1]))
    return g.add("Add", "tokens", g.add("Mul", column, g.constant(step[None, :])))


def _feed(g: _Graph, layer: FeedForward, z: str, d: int) -> str:
    w1, b1, w2, b2 = layer.dense(d)
    new = g.constant(b2)
    if layer.neurons:
        hidden = g.add("Relu", g.add("Add", g.dot(z, w1), g.constant(b1)))
        new = g.add("Add", g.dot(hidden, w2), new)
    if layer.eta != 1.0:
        z = g.add("Mul", z, g.constant(layer.eta))
    return g.add("Add", z, new)


def _attend(g: _Graph, layer: Attention, z: str, d: int) -> str:
    q, k, v = layer.dense(d)
    keys = g.add("Transpose", g.dot(z, k), perm=[1, 0])
    scores = g.add("MatMul", g.dot(z, q), keys)
    values = g.dot(z, v)
    if math.isinf(layer.beta):
        top = g.add("ReduceMax", scores, axes=[1], keepdims=1)
        chosen = g.add("Cast", g.add("Equal", scores, top), to=_kind(g))
        total = g.add("ReduceSum", chosen, g.whole([1]), keepdims=1)
        mean = g.add("Div", g.add("MatMul", chosen, values), total)
    else:
        sharp = g.add("Mul", scores, g.constant(layer.beta))
        mean = g.add("MatMul", g.add("Softmax", sharp, axis=1), values)
    if layer.rho != 1.0:
        z = g.add("Mul", z, g.constant(layer.rho))
    return g.add("Add", z, mean)


def _kind(g: _Graph) -> int:
    return int(g.helper.np_dtype_to_tensor_dtype(np.dtype(g.dtype)))
