"""Tasks on this machine or on many: joblib's backends, and Dask by its address."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, TypeVar

from hardmax._errors import HardmaxError, InputError, MissingExtraError

__all__ = ["run_tasks"]

_Task = TypeVar("_Task")
_Call = Callable[[Any], Any]
_ADDRESSES = ("tcp://", "tls://", "ucx://", "ws://", "inproc://")
_TRIES = 5
_ALONE = 60.0
_CONNECT = 10.0
_OWN = {"local": "loky", "threads": "threading"}


def run_tasks(
    call: _Call, tasks: Sequence[_Task], scheduler: str, workers: int | None = None
) -> Iterator[tuple[int, Any]]:
    """The number and the result of each task, in the order in which they finish.

    Parameters
    ----------
    call : callable
        Applied to each task; it must be importable by the workers.
    tasks : sequence
    scheduler : str
        "here" (no parallel work), "local" (processes), "threads", the address of a Dask
        scheduler such as tcp://10.0.0.1:8786, or the name of any backend of joblib.
    workers : int, optional
        Processes or threads; all cores when None.  Dask uses what it has.

    Raises
    ------
    InputError
        For an unknown scheduler, or one that does not answer.
    HardmaxError
        When workers die again and again without any task being finished.

    Notes
    -----
    Tasks of a worker that dies are run again by another one.
    """
    if scheduler == "here":
        return ((k, call(task)) for k, task in enumerate(tasks))
    if scheduler.startswith(_ADDRESSES):
        return _on_dask(call, tasks, scheduler)
    return _on_joblib(call, tasks, _OWN.get(scheduler, scheduler), workers)


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(name, "cluster") from None


def _numbered(call: _Call, k: int, task: Any) -> tuple[int, Any]:
    return k, call(task)


def _on_joblib(
    call: _Call, tasks: Sequence[Any], backend: str, workers: int | None
) -> Iterator[tuple[int, Any]]:
    joblib = _import("joblib")
    known = joblib.parallel.BACKENDS
    if backend not in known and backend not in joblib.parallel.EXTERNAL_BACKENDS:
        names = ", ".join(sorted({*known, *joblib.parallel.EXTERNAL_BACKENDS} - {"dask"}))
        raise InputError(
            f"`scheduler` must be here, local, threads, an address such as tcp://HOST:8786, or a "
            f"backend of joblib ({names}); got {backend!r}."
        )
    broken = _import("joblib.externals.loky.process_executor").BrokenProcessPool
    left = dict(enumerate(tasks))
    failures = 0
    while left:
        before = len(left)
        try:
            for k, result in _joblib_round(joblib, call, left, backend, workers):
                del left[k]
                yield k, result
        except broken:  # a worker died: those left run in a new pool
            failures = failures + 1 if len(left) == before else 0
            if failures >= _TRIES:
                raise HardmaxError(_dying("process")) from None


def _joblib_round(
    joblib: Any, call: _Call, left: dict[int, Any], backend: str, workers: int | None
) -> Iterator[tuple[int, Any]]:
    jobs = [joblib.delayed(_numbered)(call, k, task) for k, task in left.items()]
    with joblib.parallel_config(backend=backend, n_jobs=-1 if workers is None else workers):
        try:
            pool = joblib.Parallel(return_as="generator_unordered")
        except ValueError:  # some backends give all results at once
            pool = joblib.Parallel()
        yield from pool(jobs)


def _dying(what: str) -> str:
    return (
        f"a worker {what} died {_TRIES} times before it finished a task. Finished cells are kept; "
        "try fewer workers or smaller systems, memory being the usual cause."
    )


def _on_dask(call: _Call, tasks: Sequence[Any], address: str) -> Iterator[tuple[int, Any]]:
    distributed = _import("distributed")
    try:
        client = distributed.Client(address, timeout=_CONNECT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"the Dask scheduler {address} does not answer ({type(error).__name__}). "
            "Start it with `dask scheduler`, and workers with `dask worker`."
        ) from None
    try:
        yield from _DaskRun(distributed, client, call, tasks).results()
    finally:
        client.close()


class _DaskRun:
    """Tasks on a Dask cluster, a few ahead of what its workers can do at a time."""

    def __init__(self, distributed: Any, client: Any, call: _Call, tasks: Sequence[Any]) -> None:
        self.distributed, self.client, self.call = distributed, client, call
        self.tasks, self.waiting = tasks, list(range(len(tasks)))[::-1]
        self.running: dict[Any, int] = {}
        self.deaths = 0
        self.alone_since: float | None = None

    def results(self) -> Iterator[tuple[int, Any]]:
        while self.waiting or self.running:
            self._submit()
            for future in self._finished():
                k = self.running.pop(future)
                if future.status == "finished":
                    self.deaths = 0
                    yield k, future.result()
                else:
                    self._again(k, future)
                future.release()

    def _submit(self) -> None:
        cores = sum(self.client.nthreads().values())
        self._check_alone(cores)
        while self.waiting and len(self.running) < max(2, 3 * cores):
            k = self.waiting.pop()
            future = self.client.submit(self.call, self.tasks[k], pure=False, retries=2)
            self.running[future] = k

    def _check_alone(self, cores: int) -> None:
        """Without any worker, wait a minute for new ones."""
        if cores or self.alone_since is None:
            self.alone_since = None if cores else time.monotonic()
        elif time.monotonic() - self.alone_since > _ALONE:
            raise HardmaxError(
                "the Dask cluster has had no worker for a minute. Finished cells are kept; "
                "start workers and run this again."
            )

    def _finished(self) -> list[Any]:
        if not self.running:
            time.sleep(0.05)
            return []
        some = "FIRST_COMPLETED"
        try:
            with self.client.as_current():
                found = self.distributed.wait(list(self.running), timeout=1.0, return_when=some)
        except TimeoutError:
            return []
        return list(found.done)

    def _again(self, k: int, future: Any) -> None:
        """A task whose workers died, or that was lost, goes back; an error is raised."""
        error = future.exception() if future.status == "error" else None
        if error is not None and not isinstance(error, self.distributed.KilledWorker):
            if isinstance(error, ModuleNotFoundError):
                raise InputError(
                    f"a Dask worker cannot import {error.name}. Install the same packages there."
                )
            raise error
        self.deaths += 1
        if self.deaths >= _TRIES:
            raise HardmaxError(_dying("of Dask"))
        self.waiting.append(k)
