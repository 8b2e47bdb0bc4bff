"""One run: the same numbers as the command line's, and errors in its words."""

import copy
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import anabranch as ab


def test_a_seed_is_a_run_to_the_bit(file):
    first, second, other = ab.run(file, seed=1), ab.run(str(file), seed=1), ab.run(file, seed=2)
    assert first.hash == second.hash
    assert (first.seed, other.seed) == (1, 2)
    # Recording does not change the run.
    assert ab.run(file, seed=1, record=False).hash == first.hash


def test_a_run_has_what_the_document_has(file):
    r = ab.run(file)
    summary = r.summary()
    assert summary["hash"] == r.hash and summary["simulated_seconds"] == 5
    assert r.question == "Do two flows share a link?"
    for name, table in {"flows": r.flows, "links": r.links}.items():
        rows = [{key: value for key, value in row.items() if key != "paths"} for row in summary[name]]
        assert table.rows() == rows
    assert r.measures["late"] == r["flow.f1.goodput_bps"] == r.flows["goodput_bps"][1]
    assert r["flow.f0.goodput_bps + flow.f1.goodput_bps"] == sum(r.flows["goodput_bps"])


def test_run_pickled_equal(file):
    r = ab.run(file)
    again = pickle.loads(pickle.dumps(r))
    assert again.summary() == r.summary() and again.hash == r.hash and again.question == r.question
    assert again.flows.rows() == r.flows.rows() and again.measures == r.measures
    assert again.series_names == r.series_names
    for name in r.series_names:
        table, before = again.series(name), r.series(name)
        assert table.rows() == before.rows() and table.metadata == before.metadata
    assert again["mean(link.bottleneck.queue, 2, 5)"] == r["mean(link.bottleneck.queue, 2, 5)"]
    assert repr(again) == repr(r)
    # What was restored is pickled again.
    assert pickle.loads(pickle.dumps(again)).hash == r.hash


def test_table_and_scenario_pickled_equal(file):
    table = ab.run(file).flows
    again = pickle.loads(pickle.dumps(table))
    assert again.columns == table.columns and again.rows() == table.rows() and len(again) == len(table)
    assert copy.deepcopy(table).to_dict() == table.to_dict()
    scenario = ab.Scenario.read(file)
    again = pickle.loads(pickle.dumps(scenario))
    assert again.to_toml() == scenario.to_toml() and repr(again) == repr(scenario)
    assert ab.run(again, seed=1).hash == ab.run(scenario, seed=1).hash


def test_a_series_is_what_expressions_are_asked_about(file):
    r = ab.run(file)
    queue = r.series("link.bottleneck.queue")
    assert queue.columns == ["time_s", "queue"]
    assert queue.metadata == {"series": "link.bottleneck.queue"}
    # The time average of a value that holds until the next change, from 2 s to 5 s, by hand.
    points = list(zip(queue["time_s"], queue["queue"]))
    total, at, value = 0.0, 2.0, [v for t, v in points if t <= 2.0][-1]
    for t, v in [point for point in points if 2.0 < point[0] <= 5.0] + [(5.0, 0)]:
        total, at, value = total + (t - at) * value, t, v
    assert r.measures["queue"] == pytest.approx(total / 3.0, rel=1e-9)
    assert r["mean(link.bottleneck.queue, 2, 5)"] == r.measures["queue"]
    assert len(r.series("link.bottleneck.drops")) == r["link.bottleneck.dropped_packets"]


def test_record_chooses_series(file):
    r = ab.run(file, record=["flow.f0.window"])
    assert r.series_names == ["flow.f0.window"]
    with pytest.raises(ab.Error, match="was not recorded"):
        r.series("flow.f1.window")
    with pytest.raises(ab.Error, match="did you mean `flow.f0.window`"):
        r.series("flow.f0.cwnd")
    with pytest.raises(ab.Error, match="record=True"):
        ab.run(file, record=False).series("flow.f0.window")
    with pytest.raises(ab.Error, match="no flow is called `f7`"):
        ab.run(file, record=["flow.f7.window"])


def test_keys_and_laws_can_be_set(file):
    slow = ab.run(file, set={"link.bottleneck.rate": "1Mbit/s", "flow.f0.start": "0.5s"})
    assert sum(slow.flows["goodput_bps"]) < 1.1e6
    assert ab.run(file, cc={"f1": "cubic"}).flows["cc"] == ["cubic", "cubic"]
    assert ab.run(file, cc={"*": "vegas"}).flows["cc"] == ["vegas", "vegas"]
    assert ab.run(file, cc={"f0": {"name": "fast", "alpha": 5}}).flows["cc"] == ["fast", "reno"]


def test_errors_have_the_command_lines_words(tmp_path, file):
    with pytest.raises(ab.ScenarioError, match=r"absent\.toml: cannot be read: .*name a scenario file"):
        ab.run(tmp_path / "absent.toml")
    unknown = r"scenario\.toml: --set link.bottleneck.quque=5: unknown key `quque`; did you mean `queue`"
    with pytest.raises(ab.ScenarioError, match=unknown):
        ab.run(file, set={"link.bottleneck.quque": 5})
    with pytest.raises(ab.ScenarioError, match=r"nothing is called `f7`"):
        ab.run(file, cc={"f7": "cubic"})
    file.write_text("duration = 5\n")
    with pytest.raises(ab.ScenarioError, match=r"scenario\.toml:1:12: "):
        ab.run(file)
    with pytest.raises(TypeError, match="Scenario.parse"):
        ab.run(3)
    assert issubclass(ab.ScenarioError, ab.Error) and issubclass(ab.ControllerError, ab.Error)


def test_other_threads_go_on_while_a_scenario_runs(file):
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    ab.run(file, set={"duration": "400s"}, record=False)
    ended = time.monotonic()
    done.set()
    thread.join()
    inside = [began] + [t for t in ticks if began <= t <= ended] + [ended]
    longest = max(b - a for a, b in zip(inside, inside[1:]))
    # With the interpreter held it would be the whole run.
    assert longest < 0.5 * (ended - began), (longest, ended - began)


def test_progress_is_told_and_may_stop_the_run(file):
    told = []
    ab.run(file, progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1]

    def stop(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ab.run(file, progress=stop)


def test_ctrl_c_stops_a_run(file):
    program = """
        import signal, sys, anabranch as ab
        # Whoever runs these tests may ignore Ctrl-C, which is inherited.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("running", flush=True)
        try:
            ab.run(sys.argv[1], set={"duration": "100000s"}, record=False)
        except KeyboardInterrupt:
            print("stopped", flush=True)
        """
    command = [sys.executable, "-c", textwrap.dedent(program), str(file)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "running\n"
    time.sleep(0.5)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out == "stopped\n"
    assert time.monotonic() - began < 10


def test_a_notebook_shows_tables_of_texts(file):
    html = ab.run(file)._repr_html_()
    assert "Do two flows share a link?" in html and "<td>f0</td>" in html and "bottleneck.reverse" in html
    text = file.read_text().replace("share a link", "share <b>")
    assert "share &lt;b&gt;" in ab.run(ab.Scenario.parse(text))._repr_html_()
