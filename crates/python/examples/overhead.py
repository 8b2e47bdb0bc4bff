"""What does it cost to run a sweep on an executor?

Runs a grid of cells of one simulated second on plain threads of this process and on each executor that is installed, always as many workers as
there are cores, and prints for each: time, processor time of all its processes, and what both are more than on plain threads. `cores busy` is
the processor time over time and cores, `in runs` the share of the workers' time that passes within calls into Rust; nothing else is done to the
results, so the rest is dealing out, sending and writing. Needs psutil to see the processor time of other processes.

    python overhead.py 10000
"""

import concurrent.futures
import contextlib
import logging
import multiprocessing
import os
import sys
import tempfile
import time

import anabranch as ab

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def scenario():
    return (
        ab.Scenario(duration="1s", seed=1)
        .link(
            "bottleneck", "a", "b", rate="10Mbit/s", delay="10ms",
            queue={"kind": "drop_tail", "packets": 50}, error={"kind": "uniform", "rate": 0.001},
        )
        .flow("f0", "a", "b", transport="anabranch", cc={"name": "cubic"}, packet="1500B")
        .flow("f1", "a", "b", transport="anabranch", cc={"name": "reno"}, packet="1500B")
    )  # fmt: skip


@contextlib.contextmanager
def plain_threads():
    yield None


@contextlib.contextmanager
def thread_pool():
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        yield pool


@contextlib.contextmanager
def process_pool():
    with concurrent.futures.ProcessPoolExecutor(CORES, multiprocessing.get_context("spawn")) as pool:
        yield pool


@contextlib.contextmanager
def ray_local():
    import ray

    ray.init(num_cpus=CORES, include_dashboard=False, log_to_driver=False, object_store_memory=10**8)
    try:
        yield ray
    finally:
        ray.shutdown()


@contextlib.contextmanager
def dask_local():
    import distributed

    cluster = distributed.LocalCluster(n_workers=CORES, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client


@contextlib.contextmanager
def submitit_local():
    import submitit

    with tempfile.TemporaryDirectory() as folder:
        executor = submitit.LocalExecutor(folder)
        executor.update_parameters(timeout_min=60)
        yield executor


class Chunks(logging.Handler):
    """Adds up the time of the workers within runs."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.seconds, self.count = 0.0, 0

    def emit(self, record):
        self.seconds, self.count = self.seconds + record.args[1], self.count + 1


def processor_time():
    """The processor time of this process and its descendants."""
    own = time.process_time()
    try:
        import psutil
    except ImportError:
        return own
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            own += times.user + times.system + times.children_user + times.children_system
    ended = psutil.Process().cpu_times()
    return own + ended.children_user + ended.children_system


def measured(executor, axes, seeds):
    """Time, processor time, and time within runs."""
    log, chunks = logging.getLogger("anabranch"), Chunks()
    log.addHandler(chunks)
    log.setLevel(logging.DEBUG)
    began, used = time.perf_counter(), processor_time()
    s = ab.sweep(scenario(), axes, seeds=seeds, executor=executor, progress=False)
    seconds, used = time.perf_counter() - began, processor_time() - used
    log.removeHandler(chunks)
    return seconds, used, chunks, len(s)


def main(cells=200):
    seeds = max(1, cells // 100)
    axes = {"link.bottleneck.rate": [f"{10 + place / 100}Mbit/s" for place in range(cells // seeds)]}
    print(f"{cells // seeds * seeds} cells of one simulated second, {CORES} workers")
    print(f"{'':<16}{'time':>9}{'processor':>12}{'cores busy':>12}{'in runs':>9}{'chunks':>8}{'more than plain threads':>26}")
    base = None
    for who in (plain_threads, thread_pool, process_pool, dask_local, ray_local, submitit_local):
        try:
            with who() as executor:
                # A warm-up: workers start and load the module.
                measured(executor, {"link.bottleneck.rate": ["1Mbit/s", "2Mbit/s"]}, 2 * CORES)
                seconds, used, chunks, runs = measured(executor, axes, seeds)
        except ImportError as missing:
            print(f"{who.__name__:<16}{missing}")
            continue
        assert runs == cells // seeds * seeds
        base = base or (seconds, used)
        within = f"{chunks.seconds / seconds / CORES:.0%}" if chunks.count else ""
        more = f"{seconds / base[0] - 1:+.1%} time, {used / base[1] - 1:+.1%} processor"
        print(
            f"{who.__name__:<16}{seconds:>7.2f} s{used:>10.2f} s{used / seconds / CORES:>12.0%}{within:>9}{chunks.count or '':>8}"
            f"{more:>34}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
