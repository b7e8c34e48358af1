"""Leaders as exemplars: a clusterer whose convergence is proved, in scikit-learn's manner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardmax._check import check_choice, check_gamma
from hardmax._errors import InputError, ShapeError
from hardmax._types import Array, Bools, Floats, Ints
from hardmax.analysis.equilibrium import Equilibrium, equilibrium
from hardmax.dynamics.run import simulate

if TYPE_CHECKING:  # scikit-learn has no type hints

    class BaseEstimator:
        """Parameters by name."""

    class ClusterMixin:
        """`fit_predict` from `fit`."""

    def check_is_fitted(estimator: Any) -> None:
        """Raise NotFittedError before `fit`."""

    def validate_data(estimator: Any, X: Any, **kwargs: Any) -> Array:
        """A checked array."""
else:
    from sklearn.base import BaseEstimator, ClusterMixin
    from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["LeaderClustering"]

_BLOCK = 1 << 22
_ROOM = 100.0
_LAYERS = 10_000
_TIE = 1e-13
_NUDGE = 1e-6


class LeaderClustering(ClusterMixin, BaseEstimator):
    """Cluster points by the leaders they reach in hardmax attention, with a proof.

    Each point becomes a token with one more coordinate, and the hardmax layers with
    A = I run until every token follows a leader for ever.  The further coordinate
    makes the score of j for i equal to reach log(density_j) - |x_i - x_j|^2 / 2 up
    to terms that are the same for all j: a point leads unless a denser one is near.

    Parameters
    ----------
    alpha : float
        Strength of the attention: tokens move by alpha / (1 + alpha) per layer.
    n_clusters : int, optional
        At most this many leaders: the smallest `reach`, not below the given one, that
        leaves no more.  By default the number at which the leaders are most clear-cut.
    reach : float, optional
        How far a denser point is followed, in units of the mean squared distance of
        two points: 0 lets every point lead, a large number only the densest.  It is
        the size of the score matrix: reach r scores as A / r does.
    bandwidth : float
        Width of the Gaussian density, in units of the root mean squared distance.
    A : None, "identity", "whiten" or (d, d) array
        The metric <A x, y> between points, symmetric positive definite; "whiten"
        takes the inverse covariance, None the identity.
    scale : bool
        Whether each feature is divided by its standard deviation first.
    lift : bool
        False leaves the further coordinate out: centred points, whose extreme ones
        lead, as in the paper.

    Attributes
    ----------
    labels_ : (n,) int array
        Number of the leader reached; -1 for a point that stays tied between several.
    leader_indices_ : (k,) int array
        The points that lead, sorted.
    cluster_centers_ : (k, d) array
        Where they lead: the point itself, or where it had moved when it began to lead.
    n_iter_ : int
        Layers that were looked at, the settled one included.
    certificate_ : Certificate
        The proof of the limit; `certificate_.verify(est.tokens_)` checks it.
    tokens_ : (n, d) or (n, d + 1) array
        What the layers were run on.
    reach_ : float
        The reach that was used; NaN without lift.
    n_features_in_ : int

    Notes
    -----
    Time grows with n^2 d.  A new point follows the training points through the same
    layers without being followed, and its label is the leader it reaches.  `predict`
    on the training points gives `labels_`; to one that stays tied, the first leader.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9.]])
    >>> found = LeaderClustering().fit(X)
    >>> found.labels_, found.leader_indices_
    (array([0, 0, 0, 1, 1, 1]), array([0, 3]))
    >>> found.predict([[1, 1], [7, 9]])
    array([0, 1])
    >>> found.certificate_.verify(found.tokens_)
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        n_clusters: int | None = None,
        reach: float | None = None,
        bandwidth: float = 0.15,
        A: Any = None,
        scale: bool = False,
        lift: bool = True,
    ) -> None:
        self.alpha = alpha
        self.n_clusters = n_clusters
        self.reach = reach
        self.bandwidth = bandwidth
        self.A = A
        self.scale = scale
        self.lift = lift

    def fit(self, X: Any, y: Any = None) -> LeaderClustering:
        """Find the leaders of X (n, d) and the leader each point reaches.  y is ignored."""
        X = validate_data(self, X, dtype=np.float64)
        self._check_parameters()
        self._middle = X.mean(axis=0)
        self._turn = _metric(X - self._middle, self.A, self.scale)
        x = (X - self._middle) @ self._turn
        self._unit = _spread(x)
        self._points = x / self._unit
        if self.lift:
            self._weights = _log_density(self._points, self._points, self.bandwidth)
            self._top = float(self._weights.max())
            found = self._lifted()
        else:
            self.reach_ = float("nan")
            found = self._settle(self._points)
        self._keep(X, found)
        return self

    def predict(self, X: Any) -> Ints:
        """The number of the leader that each row of X (m, d) reaches."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        y = (X - self._middle) @ self._turn / self._unit
        if self.lift:
            weights = _log_density(y, self._points, self.bandwidth) - self._top
            y = _raise(y, self.reach_ * weights, self._height)
        known = _equal_rows(X, self._fitted)  # decided exactly in `fit`, in floats here
        labels = np.where(known >= 0, self.labels_[known], -1)
        return np.where(labels >= 0, labels, self._follow(y))

    def _check_parameters(self) -> None:
        check_gamma(self.alpha, None, None, 1)
        if self.n_clusters is not None and not _whole(self.n_clusters):
            raise InputError(f"`n_clusters` must be an integer >= 1; got {self.n_clusters!r}.")
        if self.reach is not None and not _number(self.reach, 0.0):
            raise InputError(f"`reach` must be a finite number >= 0; got {self.reach!r}.")
        if not _number(self.bandwidth, 0.0) or self.bandwidth == 0:
            raise InputError(f"`bandwidth` must be a finite number > 0; got {self.bandwidth!r}.")
        if not self.lift and (self.n_clusters is not None or self.reach is not None):
            raise InputError(
                "`n_clusters` and `reach` steer the lift, which is off. "
                "Without it choose `A`, or set lift=True."
            )

    def _lifted(self) -> Equilibrium:
        """The limit with the wished, or the clearest, number of leaders."""
        least = 0.0 if self.reach is None else float(self.reach)
        if self.reach is not None:
            found = self._with_reach(least)
            if self.n_clusters is None or len(found.leaders) <= self.n_clusters:
                return found
        _, each, same = np.unique(self._points, axis=0, return_index=True, return_inverse=True)
        steps = _steps(self._points[each], self._weights[each])
        wanted = self.n_clusters
        if wanted is not None and np.isinf(steps[: wanted + 1]).sum() > wanted:
            # Points of equal density never follow each other: the earlier ones go first.
            place = np.argsort(np.argsort(each))[same.reshape(-1)]
            self._weights = self._weights - _NUDGE * place / len(each)
            steps = _steps(self._points[each], self._weights[each])
        count = _clearest(steps) if wanted is None else int(wanted)
        reach = max(least, _reach_for(steps, count))
        found = self._with_reach(reach)
        while wanted is not None and len(found.leaders) > wanted:
            count -= 1  # more leaders were born on the way
            reach = max(least, _reach_for(steps, count) if count > 0 else 2 * reach)
            found = self._with_reach(reach)
        return found

    def _with_reach(self, reach: float) -> Equilibrium:
        self.reach_ = reach
        weights = reach * (self._weights - self._top)
        bent = np.abs(weights - (self._points**2).sum(axis=1) / 2).max()
        self._height = _ROOM * float(np.sqrt(bent)) if bent > 0 else 1.0
        return self._settle(_raise(self._points, weights, self._height))

    def _settle(self, tokens: Floats) -> Equilibrium:
        self.tokens_ = tokens
        return equilibrium(tokens, alpha=self.alpha, max_depth=_LAYERS)

    def _keep(self, X: Floats, found: Equilibrium) -> None:
        """The attributes of a fitted clusterer, and the layers that `predict` follows."""
        self._fitted = X.copy()
        self.labels_ = found.labels.astype(np.int64)
        self.leader_indices_ = np.array(found.leaders, dtype=np.int64)
        self.certificate_ = found.certificate
        depth = len(found.certificate.layers) - 1
        self.n_iter_ = depth + 1
        run = simulate(self.tokens_, depth, alpha=self.alpha, tie_tol=_TIE, merge_tol=0.0)
        self._layers = np.asarray(run.zs)
        self._leaders_at = found.limit[self.leader_indices_]
        moved = np.array(found.born) > 0
        self.cluster_centers_ = X[self.leader_indices_].copy()
        if moved.any():
            width = self._points.shape[1]
            back = self._leaders_at[moved, :width] * self._unit @ np.linalg.pinv(self._turn)
            self.cluster_centers_[moved] = back + self._middle

    def _follow(self, y: Floats) -> Ints:
        """Move points through the layers until each follows a leader alone."""
        gamma = float(self.alpha) / (1 + float(self.alpha))
        labels = np.full(len(y), -1, dtype=np.int64)
        active = np.arange(len(y))
        for k in range(_LAYERS):
            tokens = self._layers[min(k, len(self._layers) - 1)]
            rest = k >= len(self._layers)  # from then on only leaders are asked
            keys = self._leaders_at if rest else tokens
            if not len(keys) or not len(active):
                break
            target, alone = _chosen(y[active], keys)
            reached = _equal_rows(target, self._leaders_at)
            done = alone & (reached >= 0)
            labels[active[done]] = reached[done]
            y[active] += gamma * (target - y[active])
            active = active[~done]
            if rest:  # a point tied between leaders to the last goes to the first of them
                labels[active] = np.argmax(y[active] @ keys.T, axis=1)
                break
        return labels


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


def _number(value: Any, least: float) -> bool:
    good = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return bool(good and np.isfinite(value) and value >= least)


def _metric(x: Floats, A: Any, scale: bool) -> Floats:
    """W with <A x, y> = <x W, y W> after scaling."""
    d = x.shape[1]
    width = np.ones(d)
    named = check_choice(A, "A", _NAMED) if isinstance(A, str) else None
    if scale or named == "whiten":  # whitening is the same after scaling, and better posed
        std = x.std(axis=0)
        width = np.where(std > 0, std, 1.0)
    if A is None or named == "identity":
        return np.diag(1 / width)
    if named == "whiten":
        cloud = x / width
        values, vectors = np.linalg.eigh(cloud.T @ cloud / max(len(x), 1))
        kept = values > 1e-10 * max(values.max(), 0.0)
        root = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
        return np.asarray((vectors * root) / width[:, None])
    matrix = np.asarray(A, dtype=np.float64)
    if matrix.shape != (d, d):
        raise ShapeError(f"`A` must be ({d}, {d}) for points in R^{d}; got {matrix.shape}.")
    if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise InputError("`A` must be finite and symmetric. Give (A + A.T) / 2.")
    values, vectors = np.linalg.eigh(matrix)
    if values[0] <= 0:
        raise InputError(
            f"`A` must be positive definite; its smallest eigenvalue is {values[0]:.3g}."
        )
    return np.asarray((vectors * np.sqrt(values)) / width[:, None])


_NAMED = ("identity", "whiten")


def _spread(x: Floats) -> float:
    """The root mean squared distance of two points; 1 when all are equal."""
    top = float(np.abs(x).max())
    if top == 0:
        return 1.0
    x = x / top
    mean = 2 * float(((x - x.mean(axis=0)) ** 2).sum()) / max(len(x) - 1, 1)
    return top * float(np.sqrt(mean)) if mean > 0 else 1.0


def _distances(x: Floats, y: Floats) -> Floats:
    """Squared distances of the rows; each is a sum of squares, so equal rows give 0."""
    out = np.zeros((len(x), len(y)))
    for a, b in zip(x.T, y.T, strict=True):
        out += (a[:, None] - b) ** 2
    return out


def _log_density(y: Floats, x: Floats, bandwidth: float) -> Floats:
    """log of the sum of Gaussians around the rows of x, at the rows of y.

    A point does not count itself, so that a lone one is not dense.
    """
    out = np.empty(len(y))
    size = max(1, _BLOCK // len(x))
    for start in range(0, len(y), size):
        far = _distances(y[start : start + size], x) / (-2 * bandwidth**2)
        rows = np.arange(len(far))
        self_ = far.argmax(axis=1)
        own = rows[(far[rows, self_] == 0) & (len(x) > 1)]
        far[own, self_[own]] = -np.inf
        top = far.max(axis=1, keepdims=True)
        out[start : start + size] = top[:, 0] + np.log(np.exp(far - top).sum(axis=1))
    return out


def _steps(x: Floats, weights: Floats) -> Floats:
    """The thresholds of different points, falling."""
    return np.sort(_thresholds(x, weights))[::-1]


def _thresholds(x: Floats, weights: Floats) -> Floats:
    """The reach from which on each point follows a denser one; inf for the densest."""
    out = np.empty(len(x))
    size = max(1, _BLOCK // len(x))
    for start in range(0, len(x), size):
        far = _distances(x[start : start + size], x)
        gain = weights[None, :] - weights[start : start + size, None]
        denser = gain > 0
        ratio = far / (2 * np.where(denser, gain, 1.0))
        out[start : start + size] = np.where(denser, ratio, np.inf).min(axis=1)
    return out


def _clearest(steps: Floats) -> int:
    """The number of leaders, from 2 to sqrt(n), after which the thresholds fall most."""
    last = min(max(2, int(np.sqrt(len(steps)))), len(steps) - 1)
    if last < 2:
        return len(steps)
    low, high = steps[2 : last + 1], steps[1:last]
    with np.errstate(divide="ignore", invalid="ignore"):
        falls = np.nan_to_num(np.log(high) - np.log(low), nan=0.0, posinf=np.inf)
    return 2 + int(np.argmax(falls))


def _reach_for(steps: Floats, count: int) -> float:
    """A reach that leaves the first `count` points as leaders at layer 0."""
    if count >= len(steps):
        low = float(steps[-1])
        return low / 2 if np.isfinite(low) else 1.0
    low, high = float(steps[count]), float(steps[count - 1])
    if not np.isfinite(low):
        return 1.0
    return float(np.sqrt(low) * np.sqrt(high)) if np.isfinite(high) and low > 0 else 2 * low


def _raise(x: Floats, weights: Floats, height: float) -> Floats:
    """The tokens (x, height + (weight - |x|^2 / 2) / height)."""
    bend = weights - (x**2).sum(axis=1) / 2
    return np.column_stack([x, height + bend / height])


def _chosen(y: Floats, keys: Floats) -> tuple[Floats, Bools]:
    """The mean of the keys with the largest score for each row, and whether it is one point."""
    means, alone = np.empty_like(y), np.empty(len(y), dtype=bool)
    size = max(1, _BLOCK // len(keys))
    lengths = np.linalg.norm(keys, axis=1).max()
    for start in range(0, len(y), size):
        part = y[start : start + size]
        scores = part @ keys.T
        slack = _TIE * lengths * np.linalg.norm(part, axis=1, keepdims=True)
        best = scores >= scores.max(axis=1, keepdims=True) - slack
        first = keys[best.argmax(axis=1)]
        for row, (picked, one) in enumerate(zip(best, first, strict=True)):
            group = keys[picked]
            same = bool(np.all(group == one))
            alone[start + row] = same
            means[start + row] = one if same else np.unique(group, axis=0).mean(axis=0)
    return means, alone


def _equal_rows(rows: Floats, table: Floats) -> Ints:
    """The number of the row of `table` that each row equals, or -1."""
    known = {(row + 0.0).tobytes(): k for k, row in reversed(list(enumerate(table)))}
    return np.array([known.get((row + 0.0).tobytes(), -1) for row in rows], dtype=np.int64)
