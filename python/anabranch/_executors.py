"""Sweeps in other processes and on other machines: what is missing is dealt out in chunks, each one call into Rust."""

from __future__ import annotations

import concurrent.futures
import os
import time

from . import _native

# A chunk takes about so long: long beside what it costs to send, short beside what is lost with a worker.
CHUNK_S = 10.0
# Chunks that wait at each worker, so that none has nothing to do.
WAITING = 2
# How often futures are looked at that cannot be waited for, and whether Ctrl-C was pressed.
LOOK_EACH_S = 0.2


def run(task, places, jobs):
    """What a worker does. Returns how long it took, and the rows."""
    began = time.monotonic()
    try:
        text = _native.run_places(task, places, jobs)
    except BaseException as error:
        # A panic of Rust's cannot be sent to another process.
        if type(error).__name__ == "PanicException":
            raise RuntimeError(str(error)) from None
        raise
    return time.monotonic() - began, text


def deal(grid, executor, jobs, progress):
    """Lets an executor run what is missing of a grid. A run that fails does not stop the others."""
    executor = _executor(executor)
    task, waiting = grid.task, grid.missing()
    workers = _workers(executor)
    total, done, took = len(waiting), 0, 0.0
    # Runs of a chunk that has failed: each goes alone, so that one which fails takes no other with it.
    alone = []
    running, failed = {}, []
    if progress:
        progress(0, total)
    try:
        while waiting or alone or running:
            while (waiting or alone) and len(running) < WAITING * workers:
                size = _chunk(len(waiting), workers, took / done if done else None)
                if alone:
                    chunk = [alone.pop()]
                else:
                    chunk, waiting = waiting[:size], waiting[size:]
                try:
                    running[executor.submit(run, task, chunk, jobs)] = chunk
                except RuntimeError as error:
                    # It takes nothing more: a worker of a process pool has died, and the pool with it.
                    failed += [(place, error) for place in chunk + alone + waiting]
                    waiting, alone = [], []
                    break
            for future in _done(running):
                chunk = running.pop(future)
                try:
                    seconds, text = future.result()
                    grid.add(text)
                except Exception as error:
                    if len(chunk) > 1:
                        alone += chunk
                    else:
                        failed.append((chunk[0], error))
                    continue
                done, took = done + len(chunk), took + seconds
                if progress:
                    progress(done, total)
    finally:
        for future in running:
            future.cancel()
    if failed:
        place, error = min(failed, key=lambda it: it[0])
        raise _native.Error(
            f"{len(failed)} of {total} runs failed, the first {grid.describe(place)}: {error!r}; "
            "with `rows` the others are kept, and the same call runs what is missing"
        ) from error


def _executor(executor):
    # A client of Dask is none, but has one.
    get = getattr(executor, "get_executor", None)
    executor = get() if callable(get) else executor
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(f"{executor!r} is no executor: it has no `submit`")
    return executor


def _workers(executor):
    known = getattr(executor, "_max_workers", None)
    return known if isinstance(known, int) and known > 0 else os.cpu_count() or 1


def _chunk(left, workers, run_s):
    # The first chunks are small: nobody knows yet how long a run takes. The last ones are small too, so that all workers end together.
    fair = max(1, left // (WAITING * workers))
    return 1 if run_s is None else max(1, min(fair, int(CHUNK_S / max(run_s, 1e-6))))


def _done(running):
    """The futures that are done, at least one of them, or none for now."""
    if all(isinstance(future, concurrent.futures.Future) for future in running):
        return list(concurrent.futures.wait(running, LOOK_EACH_S, concurrent.futures.FIRST_COMPLETED).done)
    done = [future for future in running if future.done()]
    if not done:
        time.sleep(LOOK_EACH_S)
    return done
