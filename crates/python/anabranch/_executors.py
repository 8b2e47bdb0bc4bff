"""Sweeps in other processes and on other machines: the missing runs are sent to workers in chunks. Each chunk is one call into Rust."""

from __future__ import annotations

import concurrent.futures
import logging
import os
import pickle
import time
from collections import deque
from collections.abc import Sequence

from . import _native

# The target duration of a chunk: long compared with the cost of sending it, and short, as a lost worker loses its chunk.
CHUNK_S = 20.0
# Chunks in flight for each worker, so that no worker is idle.
WAITING = 2
# The interval of polling futures that cannot be waited for, and of checks for Ctrl-C.
LOOK_EACH_S = 0.2
# How often a run that is alone in its chunk is tried. If three workers are lost with it, the run is the cause.
TRIES = 3
# SLURM accepts no longer array, unless its administrator has set `MaxArraySize`.
ARRAY_MAX = 1000

# Logs each chunk, at the level `DEBUG`.
log = logging.getLogger("anabranch")


class SweepError(_native.Error):
    """Some runs of a sweep failed: `failed` says which and why, and `sweep` has the others."""

    sweep: _native.Sweep

    def __init__(
        self, message: str, failed: Sequence[tuple[str, str]] = (), sweep: _native.Sweep | None = None
    ) -> None:
        super().__init__(message)
        self.failed, self.sweep = list(failed), sweep  # type: ignore[assignment]


SweepError.__module__ = "anabranch"


def run(task, places, jobs):
    """The work of a worker. Returns the duration, the rows, and the failed runs."""
    began = time.monotonic()
    laws = [(name, _received(name, law), digest) for name, law, digest in task["laws"]]
    text, failed = _native.run_places({**task, "laws": laws}, places, jobs)
    return time.monotonic() - began, text, failed


def _sent(law):
    """A law written in Python as bytes, so that a worker that cannot read them says so, and executors do not see them. `cloudpickle`, which Dask, Ray
    and submitit need, also sends the code of a class that a script or a notebook has made."""
    try:
        try:
            import cloudpickle as pickler
        except ImportError:
            import pickle as pickler
        return pickler.dumps(law)
    except Exception:
        # Threads need no bytes, and other executors may know a way.
        return law


def _received(name, law):
    if not isinstance(law, bytes):
        return law
    try:
        return pickle.loads(law)
    except Exception as error:
        raise _native.Error(
            f"a worker cannot read the law `{name}`: {error!r}; write it in a module that the workers can import, or install cloudpickle here"
        ) from error


def sweep(grid, executor, jobs, progress):
    """Runs the missing runs of a grid, with an executor or in this process, and returns the sweep."""
    if executor is None:
        whole, failed = grid.finish(jobs=jobs, progress=progress)
    else:
        pool = _pool(executor, 1 if jobs is None else jobs)
        try:
            failed = sorted(deal(grid, pool, progress))
        finally:
            pool.close()
        whole = grid.known()
    if not failed:
        return whole
    told = [(grid.describe(place), because) for place, because in failed]
    raise SweepError(
        f"{len(told)} of {len(told) + len(whole)} runs failed, the first {told[0][0]}: {told[0][1]}; `sweep` of this exception has the others, "
        "and with `rows` they are kept, so that the same call runs what is missing",
        told,
        whole,
    )


def deal(grid, pool, progress):
    """Runs the missing runs of a grid on a pool. Returns the failed runs with their reasons; they do not stop the others."""
    deal = _Deal(grid, pool, progress)
    try:
        deal.run()
    finally:
        for future in deal.running:
            pool.cancel(future)
    return deal.failed


class _Deal:
    def __init__(self, grid, pool, progress):
        self.grid, self.pool, self.progress = grid, pool, progress
        task = grid.task
        self.task = {**task, "laws": [(name, _sent(law), digest) for name, law, digest in task["laws"]]}
        self.waiting = deque(grid.missing())
        self.total = len(self.waiting)
        # Chunks of lost workers, each with the number of its tries.
        self.again = deque()
        # Chunks in flight, by their futures.
        self.running = {}
        self.failed = []
        # The number of finished runs, and their total duration.
        self.told, self.took = 0, 0.0

    def run(self):
        self._tell()
        if self.pool.is_array and self.waiting:
            # The duration of a run must be known before a job array is sent.
            places = [self.waiting.popleft()]
            self._take(places, *run(self.task, places, self.pool.jobs))
        while self.waiting or self.again or self.running:
            self._give()
            for future in _done(self.running):
                places, tries = self.running.pop(future)
                try:
                    told = future.result()
                except _native.Error:
                    # The worker has another version, or lacks a file that the scenario needs. All other workers would fail in the same way.
                    raise
                except Exception as error:
                    self._lose(places, tries, error)
                else:
                    self._take(places, *told)

    def _give(self):
        """Sends as many chunks as the pool has room for."""
        chunks = []
        while (self.waiting or self.again) and len(self.running) + len(chunks) < self.pool.room:
            if self.again:
                chunks.append(self.again.popleft())
                continue
            size = min(self.pool.size(len(self.waiting), self.took / self.told if self.told else None), len(self.waiting))
            chunks.append(([self.waiting.popleft() for _ in range(size)], 0))
        try:
            futures = self.pool.submit(self.task, [places for places, _ in chunks]) if chunks else []
        except RuntimeError as error:
            # The pool accepts no more work: a process pool breaks when one of its workers dies.
            lost = [place for places, _ in [*chunks, *self.again, (self.waiting, 0)] for place in places]
            self.waiting, self.again = deque(), deque()
            self._fail(lost, error)
        else:
            self.running.update(zip(futures, chunks))

    def _take(self, places, seconds, text, unrun):
        """Adds the results of a chunk."""
        log.debug("a chunk of %d runs took %.3f s", len(places), seconds)
        self.grid.add(text)
        self.failed += unrun
        self.told, self.took = self.told + len(places), self.took + seconds
        self._tell()

    def _lose(self, places, tries, error):
        """Queues a chunk of a lost worker again: first as a whole, because the worker may have died of another cause; then in halves, so that a run
        that kills its worker loses no other run."""
        log.debug("a chunk of %d runs was lost: %r", len(places), error)
        if len(places) == 1 and tries + 1 == TRIES:
            self._fail(places, error)
        elif len(places) == 1 or tries == 0:
            self.again.append((places, tries + 1))
        else:
            half = len(places) // 2
            self.again += [(places[:half], 1), (places[half:], 1)]

    def _fail(self, places, error):
        self.failed += [(place, repr(error)) for place in places]
        self._tell()

    def _tell(self):
        if self.progress:
            under_way = sum(len(places) for places, _ in self.running.values())
            again = sum(len(places) for places, _ in self.again)
            self.progress(self.total - len(self.waiting) - again - under_way, self.total)


def _done(running):
    """The futures that are done, at least one of them, or none for now."""
    if all(isinstance(future, concurrent.futures.Future) for future in running):
        return list(concurrent.futures.wait(running, LOOK_EACH_S, concurrent.futures.FIRST_COMPLETED).done)
    done = [future for future in running if future.done()]
    if not done:
        time.sleep(LOOK_EACH_S)
    return done


class _Pool:
    """Anything with the interface of `concurrent.futures.Executor`. A chunk runs on `jobs` threads of its worker."""

    is_array = False

    def __init__(self, executor, jobs, workers=None):
        self.executor, self.jobs = executor, jobs
        known = workers or getattr(executor, "_max_workers", None)
        self.workers = known if isinstance(known, int) and known > 0 else os.cpu_count() or 1

    @property
    def room(self):
        """The limit of chunks in flight."""
        return WAITING * self.workers

    def size(self, left, run_s):
        """The number of runs in the next chunk, from the runs that are left and the duration of a run."""
        # The first chunks are small, because the duration of a run is not known yet. The last ones are small too, so that all workers end together.
        fair = max(1, left // (WAITING * self.workers))
        return 1 if run_s is None else min(fair, _whole(run_s))

    def submit(self, task, chunks):
        return [self.executor.submit(run, task, places, self.jobs) for places in chunks]

    def cancel(self, future):
        future.cancel()

    def close(self):
        pass


class _Submitit(_Pool):
    """An executor of submitit: a job array for all chunks."""

    is_array = True
    room = ARRAY_MAX

    def size(self, left, run_s):
        # Jobs wait in a shared queue, so there should be few.
        return _whole(run_s)

    def submit(self, task, chunks):
        count = len(chunks)
        return self.executor.map_array(run, [task] * count, chunks, [self.jobs] * count)


class _Ray(_Pool):
    """A cluster of Ray, or a local one that lives as long as the sweep."""

    def __init__(self, ray, jobs):
        self.ray, self.is_own = ray, not ray.is_initialized()
        if self.is_own:
            ray.init(log_to_driver=False)
        super().__init__(None, jobs, max(1, int(ray.cluster_resources().get("CPU", 1)) // jobs))
        # Lost workers are handled here, as for all executors.
        self.remote = ray.remote(run).options(num_cpus=jobs, max_retries=0, name="anabranch")
        self.task, self.references = (None, None), {}

    def submit(self, task, chunks):
        # All chunks share one task, which Ray sends to each machine once.
        if self.task[0] is not task:
            self.task = (task, self.ray.put(task))
        references = [self.remote.remote(self.task[1], places, self.jobs) for places in chunks]
        futures = [reference.future() for reference in references]
        self.references.update(zip(futures, references))
        for future in futures:
            # When the reference is dropped, Ray frees the rows.
            future.add_done_callback(lambda future: self.references.pop(future, None))
        return futures

    def cancel(self, future):
        reference = self.references.get(future)
        if reference is not None:
            self.ray.cancel(reference, force=True)

    def close(self):
        self.references.clear()
        if self.is_own:
            self.ray.shutdown()


def _whole(run_s):
    """The number of runs that take as long as a chunk should."""
    return max(1, int(CHUNK_S / max(run_s, 1e-6)))


def _pool(executor, jobs):
    if jobs < 1:
        raise ValueError("jobs is 0; use 1 or more")
    if executor == "ray":
        try:
            import ray as executor
        except ImportError:
            raise _native.Error("executor='ray' needs Ray: pip install 'anabranch[ray]'") from None
    if getattr(executor, "__name__", None) == "ray" and callable(getattr(executor, "remote", None)):
        return _Ray(executor, jobs)
    if callable(getattr(executor, "map_array", None)):
        return _Submitit(executor, jobs)
    if callable(getattr(executor, "get_executor", None)):
        # A Dask client is no executor, but has one. `pure=False`: a repeated task must run again.
        threads = getattr(executor, "nthreads", dict)().values()
        return _Pool(executor.get_executor(pure=False), jobs, sum(threads) // jobs or None)
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(f"{executor!r} is no executor: it has no `submit`")
    return _Pool(executor, jobs)
