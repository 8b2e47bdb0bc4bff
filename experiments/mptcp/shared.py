#!/usr/bin/env python3
"""Do two subflows of MPTCP through one bottleneck take one flow's share? (rfc-6356, goal 2)

    sudo experiments/mptcp/shared.py path/to/anabranch [rounds [seconds]]

Over the first link of links.toml, 50 Mbit/s and 50 ms: an MPTCP connection with two subflows, to two ports of one address, beside a TCP connection of the same
law. Either begins first, half a second apart. The rates are those from 15 s on that iperf3's senders tell. In each round each case is run once: a law, and over
one subflow as a control. It prints one line of JSON for each case: what the connection has of what the TCP has, least, median and most, the rates of all rounds,
and of `anabranch` the part of the time in which a subflow, and the TCP, took others for rivals (mode `compete`, asked each second).
"""

import itertools
import json
import re
import statistics
import subprocess
import sys
import threading
import time

import measure
from measure import PROGRAM, address, laws, run, within

ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
SECONDS = int(sys.argv[3]) if len(sys.argv) > 3 else 45
# Starts and first drains are over.
FROM = 15
# The port of the second subflow: another one in each case, as the kernel keeps it for a while.
PORTS = itertools.count(6001)
CASES = [("anabranch", True), ("fast", True), ("anabranch", False), ("fast", False)]


def mean(told):
    """Mbit/s of a sender from FROM on."""
    intervals = [one["sum"] for one in told["intervals"] if one["sum"]["start"] >= FROM]
    return statistics.mean(one["bits_per_second"] for one in intervals) / 1e6


def begin(law, port, multipath):
    wrapped = ["mptcpize", "run"] if multipath else []
    server = subprocess.Popen(within("h1", *wrapped, "iperf3", "-s", "-1", "-p", port), stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    client = within("h0", *wrapped, "iperf3", "-c", address("h1", "one"), "-p", port, "-t", str(SECONDS), "-C", law, "-J")
    return server, subprocess.Popen(client, stdout=subprocess.PIPE, text=True)


def acknowledged(port):
    """Bytes that the subflows to a port have brought over."""
    shown = run(*within("h0", "ss", "-HtinO"))
    return sum(int(count) for line in shown.splitlines() if f":{port} " in line for count in re.findall(r"bytes_acked:(\d+)", line))


class Modes(threading.Thread):
    """How often `kernel status` has a subflow, and the TCP, that takes others for rivals."""

    def __init__(self, law):
        super().__init__()
        self.law, self.asked, self.competing, self.ended = law, 0, [0, 0], threading.Event()

    def run(self):
        while not self.ended.wait(1):
            shown = json.loads(run(PROGRAM, "kernel", "status", "--json"))
            sockets = [one for law in shown if law["law"] == self.law for one in law["connections"] if one["mode"] == "compete"]
            self.asked += 1
            # The TCP has port 5302; subflows have 5301 and one of PORTS.
            of_tcp = [one["remote"].endswith(":5302") for one in sockets]
            self.competing[0] += not all(of_tcp)
            self.competing[1] += any(of_tcp)

    def stop(self):
        self.ended.set()
        self.join()
        return [round(count / max(self.asked, 1), 2) for count in self.competing]


def pair(law, port, multipath, is_first):
    """The rates of the MPTCP connection and of the TCP beside it, and how long either took others for rivals."""
    both = [("5301", True), ("5302", False)]
    running = {}
    for server_port, of_mptcp in both if is_first else reversed(both):
        running[of_mptcp] = begin(law, server_port, of_mptcp)
    time.sleep(FROM)
    second = acknowledged(port)
    modes = Modes(law)
    modes.start()
    rates = {}
    for of_mptcp, (server, client) in running.items():
        out, _ = client.communicate(timeout=SECONDS + 60)
        server.wait(timeout=30)
        rates[of_mptcp] = mean(json.loads(out))
    competing = modes.stop()
    if multipath != (second > 1_000_000):
        sys.exit(f"the second subflow had brought {second} bytes")
    return rates[True], rates[False], competing


def main():
    found = {}
    with laws(), measure.links(0):
        for number in range(ROUNDS):
            for law, multipath in CASES:
                port = str(next(PORTS))
                for host in ("h0", "h1"):
                    run(*within(host, "ip", "mptcp", "endpoint", "flush"))
                if multipath:
                    run(*within("h1", "ip", "mptcp", "endpoint", "add", address("h1", "one"), "port", port, "signal"))
                rates = pair(law, port, multipath, number % 2 == 0)
                found.setdefault((law, multipath), []).append(rates)
                load = open("/proc/loadavg").read().split()[0]
                competing = f"compete {rates[2][0]}, {rates[2][1]}"
                print(f"round {number + 1} {law}, {2 if multipath else 1} subflows: {rates[0]:.1f} beside {rates[1]:.1f}, {competing}, load {load}", file=sys.stderr, flush=True)
    for (law, multipath), rates in found.items():
        ratios = sorted(one / other for one, other, _ in rates)
        line = {
            "law": law, "subflows": 2 if multipath else 1,
            "least": round(ratios[0], 2), "median": round(statistics.median(ratios), 2), "most": round(ratios[-1], 2),
            "rates": [[round(one, 1), round(other, 1)] for one, other, _ in rates],
            "competing": [competing for _, _, competing in rates],
        }
        print(json.dumps(line))


if __name__ == "__main__":
    main()
