"""Series of a run as curves, with matplotlib if it is there."""

from __future__ import annotations

import io

from ._native import Error

# The labels of the axes.
UNITS = {
    "window": "packets",
    "ssthresh": "packets",
    "in_flight": "packets",
    "queue": "packets",
    "held": "packets",
    "peer_window": "packets",
    "acked_seq": "packets",
    "rtt": "s",
    "base_rtt": "s",
    "avg_rtt": "s",
    "ipd": "s",
    "delay": "s",
    "goodput": "bit",
    "throughput": "bit",
}


def plot(self, *names):
    """Draws series over time, one panel for each name, and returns the figure.

    A name is a series (`flow.f0.window`), or a variable (`window`, `queue`), which means every flow or link that has it.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise Error("plot needs matplotlib: pip install matplotlib") from missing
    names = names or ("window",)

    class Shown(Figure):
        """Shows itself in a notebook, which by default shows only figures of pyplot."""

        def _repr_png_(self):
            picture = io.BytesIO()
            self.savefig(picture, format="png")
            return picture.getvalue()

    figure = Shown(figsize=(8, 1 + 2.2 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), sharex=True, squeeze=False)[:, 0]
    for name, axes in zip(names, panels):
        for series in _meant(self, name):
            table = self.series(series)
            variable = table.columns[1]
            values = table.array(variable)
            if len(values) == 0:
                continue
            # A variable keeps its value until the next change; an event has no duration.
            axes.step(table.array("time_s"), values, where="post", linewidth=1, label=series.rsplit(".", 1)[0])
        variable = name.rsplit(".", 1)[-1]
        axes.set_ylabel(f"{variable} ({UNITS[variable]})" if variable in UNITS else variable)
        axes.legend(loc="upper right", fontsize="small")
    panels[-1].set_xlabel("time (s)")
    return figure


def _meant(run, name):
    known = run.series_names
    if "." in name:
        return [name]
    found = [series for series in known if series.rsplit(".", 1)[-1] == name and series.count(".") == 2]
    if not found:
        variables = sorted({series.rsplit(".", 1)[-1] for series in known})
        raise Error(f"no series is called `{name}`; there are {', '.join(variables)}")
    return found
