"""Transformers with hardmax attention: simulate, prove, learn, construct.

The public names are resolved on first use, so that `hardmax --help` answers
without importing torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Certificate": "hardmax.analysis.certificate",
    "Equilibrium": "hardmax.analysis.equilibrium",
    "Control": "hardmax.analysis.control",
    "HardmaxError": "hardmax._errors",
    "HardmaxClassifier": "hardmax.estimators.classifier",
    "Leader": "hardmax.dynamics.run",
    "LeaderClustering": "hardmax.estimators.clustering",
    "Network": "hardmax.exact.network",
    "Polytope": "hardmax.analysis.polytope",
    "Run": "hardmax.dynamics.run",
    "choose_matrix": "hardmax.analysis.control",
    "construct": "hardmax.exact.construct",
    "equilibrium": "hardmax.analysis.equilibrium",
    "interpolate": "hardmax.exact.interpolate",
    "layer": "hardmax.dynamics.layer",
    "load": "hardmax.estimators.load",
    "simulate": "hardmax.dynamics.run",
    "sweep": "hardmax.lab.sweep",
}

__all__ = sorted([*_HOME, "__version__"])

if TYPE_CHECKING:
    from hardmax._errors import HardmaxError as HardmaxError
    from hardmax.analysis.certificate import Certificate as Certificate
    from hardmax.analysis.control import Control as Control
    from hardmax.analysis.control import choose_matrix as choose_matrix
    from hardmax.analysis.equilibrium import Equilibrium as Equilibrium
    from hardmax.analysis.equilibrium import equilibrium as equilibrium
    from hardmax.analysis.polytope import Polytope as Polytope
    from hardmax.dynamics.layer import layer as layer
    from hardmax.dynamics.run import Leader as Leader
    from hardmax.dynamics.run import Run as Run
    from hardmax.dynamics.run import simulate as simulate
    from hardmax.estimators.classifier import HardmaxClassifier as HardmaxClassifier
    from hardmax.estimators.clustering import LeaderClustering as LeaderClustering
    from hardmax.estimators.load import load as load
    from hardmax.exact.construct import construct as construct
    from hardmax.exact.interpolate import interpolate as interpolate
    from hardmax.exact.network import Network as Network
    from hardmax.lab.sweep import sweep as sweep


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hardmax' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
