"""The Tikhonov experiment: a block trained towards targets that a block can hit exactly.

A teacher block makes the targets, so an exact interpolant theta* exists.  Any
minimiser of loss + (epsilon / 2) ||theta||^2 then has loss at most
(epsilon / 2) ||theta*||^2: the loss falls at least linearly in epsilon.  Here a
student of the same shape is trained by Adam with that penalty.  All draws are
those of the paper's scripts for the same seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hardmax._errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["TikhonovRun", "tikhonov", "tikhonov_stages"]

_EVERY = 100


@dataclass(frozen=True)
class TikhonovRun:
    """Losses of one training, beside the threshold that the teacher proves.

    `losses` holds the loss at every hundredth epoch and at the last, `smallest`
    the smallest of all; `threshold` is epsilon ||theta*||^2; `below` the first
    epoch below it, or None.
    """

    epsilon: float
    epochs: int
    teacher_norm: float
    student_norm: float
    threshold: float
    epochs_seen: tuple[int, ...]
    losses: tuple[float, ...]
    smallest: float
    below: int | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def tikhonov(
    epsilon: float,
    epochs: int,
    *,
    sequences: int = 10,
    length: int = 100,
    dim: int = 16,
    width: int = 4,
    seed: int = 0,
    progress: Callable[[int, float], None] | None = None,
) -> TikhonovRun:
    """Train one block with weight decay `epsilon` towards the targets of a teacher.

    Tokens and teacher weights are uniform on (0, 1); the teacher has uniform
    attention, V = I, rho = 0, eta = 1.  The student has softmax attention at
    temperature 1 with one row in Q and K, and starts from rho = eta = 0.  The
    loss is the mean over sequences of the largest squared distance of a token
    to the target; Adam, rate 1e-3, cosine schedule, full batch.

    Parameters
    ----------
    epsilon
        The penalty, at least 0.
    epochs
        Number of steps.
    sequences, length, dim, width
        Sizes of the data and of the feed-forward layer.
    seed
        Of data, teacher and student.
    progress
        Called with (epoch, loss) at every recorded epoch.

    Returns
    -------
    TikhonovRun
    """
    (run,) = tikhonov_stages(
        [(epsilon, epochs)], sequences=sequences, length=length, dim=dim, width=width, seed=seed,
        progress=progress,
    )  # fmt: skip
    return run


def tikhonov_stages(
    stages: Sequence[tuple[float, int]],
    *,
    sequences: int = 10,
    length: int = 100,
    dim: int = 16,
    width: int = 4,
    seed: int = 0,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[TikhonovRun, ...]:
    """Train one student through several (epsilon, epochs), each from where the last ended.

    This is how the paper's second figure is made: its script goes on with the
    same block.  Each stage has an optimiser and a schedule of its own.  Takes
    the other arguments of `tikhonov`.
    """
    import torch

    from hardmax.select.threads import one_thread

    for epsilon, epochs in stages:
        if epsilon < 0 or epochs < 1:
            raise InputError(
                f"`epsilon` must be at least 0 and `epochs` at least 1; got {epsilon}, {epochs}."
            )
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator)

    x = uniform(sequences, length, dim)
    teacher = {"W": uniform(width, dim), "U": uniform(dim, width), "b": uniform(width)}
    mean = x.mean(dim=1)
    goal = mean + torch.relu(mean @ teacher["U"] + teacher["b"]) @ teacher["W"]
    norm = float(sum((v**2).sum() for v in teacher.values())) + dim + 1.0
    student = _student(dim, width, generator)
    with one_thread():
        return tuple(_train(student, x, goal, norm, stage, progress) for stage in stages)


def _train(
    student: dict[str, Tensor], x: Tensor, goal: Tensor, norm: float, stage: tuple[float, int],
    progress: Callable[[int, float], None] | None,
) -> TikhonovRun:  # fmt: skip
    """One stage of Adam; the student is changed in place."""
    import torch

    epsilon, epochs = stage
    step = torch.optim.Adam(list(student.values()), lr=1e-3, weight_decay=epsilon)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(step, T_max=epochs)
    seen, losses = [], []
    smallest, below = float("inf"), None
    for epoch in range(epochs + 1):
        loss = ((_block(student, x) - goal[:, None]) ** 2).sum(-1).amax(dim=1).mean()
        value = float(loss.detach())
        smallest = min(smallest, value)
        below = epoch if below is None and value < epsilon * norm else below
        if epoch % _EVERY == 0 or epoch == epochs:
            seen.append(epoch)
            losses.append(value)
            if progress is not None:
                progress(epoch, value)
        if epoch < epochs:
            step.zero_grad()
            torch.autograd.backward(loss)
            step.step()
            schedule.step()
    return TikhonovRun(
        epsilon=epsilon,
        epochs=epochs,
        teacher_norm=norm,
        student_norm=float(sum((v.detach() ** 2).sum() for v in student.values())),
        threshold=epsilon * norm,
        epochs_seen=tuple(seen),
        losses=tuple(losses),
        smallest=smallest,
        below=below,
    )


def _student(dim: int, width: int, generator: Any) -> dict[str, Tensor]:
    """Uniform weights within 1/sqrt(fan in), drawn in the order of the paper's modules."""
    import torch

    shapes = {"Q": (1, dim), "K": (1, dim), "V": (dim, dim), "U": (width, dim), "b": (width,)}
    out = {}
    for name, shape in {**shapes, "W": (dim, width)}.items():
        bound = (dim if name == "b" else shape[1]) ** -0.5
        out[name] = torch.empty(*shape).uniform_(-bound, bound, generator=generator)
    out["rho"], out["eta"] = torch.zeros(()), torch.zeros(())
    return {name: value.requires_grad_() for name, value in out.items()}


def _block(p: dict[str, Tensor], x: Tensor) -> Tensor:
    """Attention, then feed-forward, with residual factors rho and eta."""
    import torch

    scores = (x @ p["Q"].T) @ (x @ p["K"].T).transpose(1, 2)
    x = p["rho"] * x + torch.softmax(scores, dim=-1) @ (x @ p["V"].T)
    return p["eta"] * x + torch.relu(x @ p["U"].T + p["b"]) @ p["W"].T
