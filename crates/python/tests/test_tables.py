"""Libraries that support Arrow read the tables."""

import array
import sys

import pytest

import anabranch as ab


@pytest.fixture
def r(file):
    return ab.run(file)


def test_python_alone_reads_a_table(r):
    flows = r.flows
    assert len(flows) == 2 and "cc" in flows and "rate" not in flows
    assert [row["id"] for row in flows] == flows["id"] == ["f0", "f1"]
    assert flows["max_seq"] == [row["max_seq"] for row in flows.rows()]
    assert list(flows.to_dict()) == flows.columns
    with pytest.raises(KeyError, match="no column is called `rate`"):
        flows["rate"]
    window = r.series("flow.f0.window").array("window")
    assert isinstance(window, array.array) and window.typecode == "d" and len(window) > 100
    assert list(flows.array("sent_packets")) == flows["sent_packets"]
    assert "goodput_bps" in repr(flows)


def test_pyarrow(r):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(r.flows)
    assert table.column_names == r.flows.columns
    assert table.to_pylist() == r.flows.rows()
    assert pa.record_batch(r.flows).num_rows == 2
    assert pa.schema(r.flows).field("goodput_bps").type == pa.float64()
    series = pa.table(r.series("flow.f0.window"))
    assert series.schema.metadata == {b"series": b"flow.f0.window"}
    assert series["window"].to_pylist() == r.series("flow.f0.window")["window"]


def test_polars(r):
    pl = pytest.importorskip("polars")
    assert pl.DataFrame(r.flows).rows(named=True) == r.flows.rows()
    assert pl.DataFrame(r.series("link.bottleneck.queue"))["queue"].max() <= 41


def test_pandas(r):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame.from_arrow(r.flows)
    assert list(frame["id"]) == ["f0", "f1"]
    assert list(frame["goodput_bps"]) == r.flows["goodput_bps"]


def test_duckdb(r):
    duckdb = pytest.importorskip("duckdb")
    flows = r.flows
    assert duckdb.sql("select id, goodput_bps from flows").fetchall() == list(zip(flows["id"], flows["goodput_bps"]))


def test_a_plot_has_a_panel_for_each_name(r, tmp_path):
    pytest.importorskip("matplotlib")
    figure = r.plot("window", "rtt", "link.bottleneck.queue")
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == ["window (packets)", "rtt (s)", "queue (packets)"]
    assert [line.get_label() for line in figure.axes[0].lines] == ["flow.f0", "flow.f1"]
    figure.savefig(tmp_path / "run.png")
    with pytest.raises(ab.Error, match="no series is called `cwnd`; there are"):
        r.plot("cwnd")


def test_without_matplotlib_a_plot_says_what_to_install(r, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ab.Error, match="pip install matplotlib"):
        r.plot()
