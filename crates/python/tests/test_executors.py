"""Sweeps on real executors: Dask, Ray and submitit, each with two local workers, one of which is killed during the sweep. The
table equals that of a sweep in one process, to the byte; also if the driver is killed and the sweep is run again."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import anabranch as ab

AXES = {"link.bottleneck.rate": ["50Mbit/s", "80Mbit/s"]}
# So that a run takes a second, and a worker can be killed while it runs one.
GRID = {"set": {"duration": "30s", "link.bottleneck.queue.packets": 200}, "seeds": 4}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    from conftest import SCENARIO

    path = tmp_path_factory.mktemp("sweep") / "scenario.toml"
    path.write_text(SCENARIO.replace("queue = { kind", 'error = { kind = "uniform", rate = 0.0001 }\nqueue = { kind', 1))
    return path


@pytest.fixture(scope="module")
def alone(file):
    return ab.sweep(file, AXES, **GRID)


@pytest.fixture(autouse=True)
def chunks_of_half_a_second(monkeypatch):
    monkeypatch.setattr("anabranch._executors.CHUNK_S", 0.5)


class Killer(threading.Thread):
    """Kills the first of the processes that `find` finds, in the middle of what it does."""

    def __init__(self, find):
        super().__init__(daemon=True)
        self.find, self.killed = find, None

    def run(self):
        while self.killed is None:
            time.sleep(0.1)
            for pid in list(self.find())[:1]:
                os.kill(pid, signal.SIGKILL)
                self.killed = pid


def holds_against(file, alone, executor, find, tmp_path):
    killer = Killer(find)
    killer.start()
    told = []
    s = ab.sweep(file, AXES, executor=executor, progress=lambda *it: told.append(it), **GRID)
    assert killer.killed is not None, "it was over before a worker could be killed"
    assert told[0] == (0, 8) and told[-1] == (8, 8)
    same(s, alone, tmp_path)


def same(s, alone, tmp_path):
    assert s.table.to_dict() == alone.table.to_dict() and s.table.metadata == alone.table.metadata
    for kind in ("csv", "parquet"):
        if kind == "parquet":
            pytest.importorskip("pyarrow")
        for name, it in (("alone", alone), ("other", s)):
            it.write(tmp_path / f"{name}.{kind}")
        assert (tmp_path / f"alone.{kind}").read_bytes() == (tmp_path / f"other.{kind}").read_bytes()


def children(is_one):
    """Processes below this one whose command line is as `is_one` says."""
    psutil = pytest.importorskip("psutil")
    for process in psutil.Process().children(recursive=True):
        try:
            if is_one(" ".join(process.cmdline())):
                yield process.pid
        except psutil.Error:
            pass


def test_dask_survives_a_killed_worker(file, alone, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
    ) as cluster, distributed.Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        assert len(set(pids)) == 2

        def busy():
            return pids if any(client.processing().values()) else []

        holds_against(file, alone, client, busy, tmp_path)


def test_ray_survives_a_killed_worker(file, alone, tmp_path):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=10**8)
    try:
        holds_against(file, alone, ray, lambda: children(lambda it: it.startswith("ray::anabranch")), tmp_path)
        same(ab.sweep(file, AXES, executor="ray", **GRID), alone, tmp_path)
        assert ray.is_initialized(), "what the caller has begun the caller ends"
    finally:
        ray.shutdown()


def test_submitit_survives_a_killed_job(file, alone, tmp_path):
    submitit = pytest.importorskip("submitit")
    executor = submitit.LocalExecutor(tmp_path / "jobs")
    executor.update_parameters(timeout_min=5)
    holds_against(file, alone, executor, lambda: children(lambda it: "submitit.core._submit" in it), tmp_path)


DRIVER = """
import sys
import anabranch as ab
ab.sweep(sys.argv[1], {axes}, rows=sys.argv[2], jobs=1, **{grid})
"""


def test_after_a_killed_driver_only_what_is_missing_is_run(file, alone, tmp_path):
    rows = tmp_path / "rows.csv"
    code = DRIVER.format(axes=AXES, grid=GRID)
    with subprocess.Popen([sys.executable, "-c", code, str(file), str(rows)]) as driver:
        while driver.poll() is None and not (rows.exists() and rows.read_text().count(",hash,") >= 2):
            time.sleep(0.01)
        driver.kill()
    assert driver.returncode == -signal.SIGKILL, "it was over before it could be killed"
    told = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        s = ab.sweep(file, AXES, executor=pool, rows=rows, progress=lambda *it: told.append(it), **GRID)
    assert told[-1][1] <= 6, "what was done is kept"
    same(s, alone, tmp_path)


def test_a_worker_of_another_version_is_refused(file):
    class Other(concurrent.futures.ThreadPoolExecutor):
        def submit(self, function, task, *arguments):
            return super().submit(function, {**task, "engine": "0123456789abcdef"}, *arguments)

    with Other(1) as pool, pytest.raises(ab.Error, match="another version of anabranch, .* install the same wheel"):
        ab.sweep(file, AXES, executor=pool, **GRID)


def test_a_worker_needs_no_files(file, tmp_path):
    """The base of a scenario and the trace of a link are sent to the worker: here the files are deleted before it starts."""
    base, trace, path = tmp_path / "base.toml", tmp_path / "link.trace", tmp_path / "s.toml"
    # A packet of 1504 B each 2 ms.
    trace.write_text("2\n4\n")
    base.write_text(file.read_text().replace('rate = "10Mbit/s"', 'trace = "link.trace"'))
    path.write_text('extends = "base.toml"\n')

    class Elsewhere(concurrent.futures.ThreadPoolExecutor):
        def submit(self, *arguments):
            for gone in (base, trace):
                gone.unlink(missing_ok=True)
            return super().submit(*arguments)

    axes = {"link.bottleneck.delay": ["5ms", "10ms"]}
    here = ab.sweep(path, axes)
    with Elsewhere(1) as pool:
        assert ab.sweep(path, axes, executor=pool).table.to_dict() == here.table.to_dict()


def test_a_worker_gets_the_modules_that_the_driver_has_read(file, wasm, tmp_path):
    """The file of a controller is sent: here it is another one, and then gone, before the worker starts."""
    path, module = tmp_path / "s.toml", tmp_path / "mine.wasm"
    path.write_text(file.read_text().replace('cc = { name = "cubic" }', 'cc = { plugin = "mine.wasm" }'))
    module.write_bytes(wasm(16))
    axes = {"link.bottleneck.delay": ["5ms", "10ms"]}
    here = ab.sweep(path, axes)

    class Elsewhere(concurrent.futures.ThreadPoolExecutor):
        def submit(self, *arguments):
            module.write_bytes(wasm(2))
            return super().submit(*arguments)

    with Elsewhere(1) as pool:
        elsewhere = ab.sweep(path, axes, executor=pool)
    assert elsewhere.table.to_dict() == here.table.to_dict()
    assert ab.sweep(path, axes).table["hash"] != here.table["hash"], "the file is another one now"


def test_a_law_in_python_is_sent_by_dask_ray_and_submitit(file, tmp_path):
    """A class of a script, which no worker can import."""
    pytest.importorskip("cloudpickle")
    mine = law_of(LAW)
    axes, grid = {"flow.f0.cc": [mine, "reno"], **AXES}, {"seeds": 2}
    alone = ab.sweep(file, axes, **grid)
    assert alone.table["cc"] == ["Mine"] * 4 + ["reno"] * 4
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path)
    ) as cluster, distributed.Client(cluster) as client:
        assert ab.sweep(file, axes, executor=client, **grid).table.to_dict() == alone.table.to_dict()
    submitit = pytest.importorskip("submitit")
    jobs = submitit.LocalExecutor(tmp_path / "jobs")
    jobs.update_parameters(timeout_min=5)
    assert ab.sweep(file, axes, executor=jobs, **grid).table.to_dict() == alone.table.to_dict()
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=10**8)
    try:
        assert ab.sweep(file, axes, executor=ray, **grid).table.to_dict() == alone.table.to_dict()
    finally:
        ray.shutdown()


def test_a_worker_with_another_version_of_a_law_is_refused(file):
    mine, other = (law_of(text) for text in (LAW, LAW.replace("1 /", "2 /")))

    class Elsewhere(concurrent.futures.ThreadPoolExecutor):
        def submit(self, function, task, *arguments):
            laws = [(name, other, digest) for name, _, digest in task["laws"]]
            return super().submit(function, {**task, "laws": laws}, *arguments)

    with Elsewhere(1) as pool, pytest.raises(ab.Error, match="another version of the law `Mine`"):
        ab.sweep(file, {"flow.f0.cc": [mine]}, executor=pool)


def test_a_worker_that_cannot_read_a_law_says_so(file):
    class Elsewhere(concurrent.futures.ThreadPoolExecutor):
        def submit(self, function, task, *arguments):
            laws = [(name, b"cnowhere\nMine\n.", digest) for name, _, digest in task["laws"]]
            return super().submit(function, {**task, "laws": laws}, *arguments)

    with Elsewhere(1) as pool, pytest.raises(ab.Error, match="cannot read the law `Mine`.*No module named 'nowhere'"):
        ab.sweep(file, {"flow.f0.cc": [law_of(LAW)]}, executor=pool)


LAW = """
import anabranch as ab

class Mine(ab.Controller):
    def on_ack(self, view, ack):
        self.window += 1 / self.window
"""


def law_of(text):
    names = {"__name__": "__main__"}
    exec(text, names)
    return names["Mine"]
