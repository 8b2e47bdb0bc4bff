#!/usr/bin/env python3
"""Does MPTCP with a law in the kernel free a shared receive buffer of blocking? (multihoming-2010, section II.B: a lossy path stops the other one of SCTP-CMT)

    sudo experiments/mptcp/measure.py path/to/anabranch [rounds [seconds]]

iperf3 over the two links of links.toml: over MPTCP, and over the first one alone. Path two loses 0, 1 or 5 %; path one loses nothing. The receive buffer is the
most that `tcp_rmem` allows. In each round each case is run once. It prints one line of JSON for each case: medians of the rate that the receiver's program has, of
the rate on path one in Mbit/s, and of its longest pause in s; the rates of all rounds; and how many pauses of more than 0.5 s there were in all. The laws are loaded
for the time; mptcpize and iperf3 are needed.
"""

import contextlib
import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.abspath(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
SECONDS = int(sys.argv[3]) if len(sys.argv) > 3 else 10
NAME = "mptcp"
LOSSES = [0, 0.01, 0.05]
BUFFERS = [150_000, 1_000_000, 32_000_000]
LAWS = {"anabranch": [], "fast": ["alpha=50"], "cubic": None}
# A pause longer than this is the paper's blocking.
PAUSE_S = 0.5


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}{done.stdout}")
    return done.stdout


def within(host, *command):
    return [PROGRAM, "link", "exec", "--name", NAME, host, "--", *command]


@contextlib.contextmanager
def laws():
    """A law's name is the whole machine's: the tests of `anabranch kernel` wait, and are waited for."""
    with open(os.path.join(tempfile.gettempdir(), "anabranch-kernel-tests.lock"), "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        ours = {name: settings for name, settings in LAWS.items() if settings is not None}
        try:
            for name, settings in ours.items():
                run(PROGRAM, "kernel", "load", name, *settings)
            yield
        finally:
            subprocess.run([PROGRAM, "kernel", "unload", *ours], capture_output=True)


@contextlib.contextmanager
def links(loss):
    subprocess.run([PROGRAM, "link", "down", NAME], capture_output=True)
    run(PROGRAM, "link", "up", "--name", NAME, os.path.join(HERE, "links.toml"), "--set", f"link.two.error.rate={loss}")
    try:
        for host in ("h0", "h1"):
            run(*within(host, "ip", "mptcp", "limits", "set", "subflow", "2", "add_addr_accepted", "2"))
        run(*within("h0", "ip", "mptcp", "endpoint", "add", address("h0", "two"), "subflow"))
        run(*within("h1", "ip", "mptcp", "endpoint", "add", address("h1", "two"), "signal"))
        yield
    finally:
        subprocess.run([PROGRAM, "link", "down", NAME], capture_output=True)


def address(host, device):
    shown = json.loads(run(*within(host, "ip", "-4", "-j", "address", "show", "dev", device)))
    return shown[0]["addr_info"][0]["local"]


class Watch(threading.Thread):
    """What has come over path one, fifty times a second."""

    SCRIPT = """
import time
while True:
    for line in open("/proc/net/dev"):
        if line.strip().startswith("one:"):
            print(time.monotonic(), line.split(":")[1].split()[0], flush=True)
    time.sleep(0.02)
"""

    def __init__(self):
        super().__init__()
        self.points = []
        self.process = subprocess.Popen(within("h1", sys.executable, "-u", "-c", self.SCRIPT), stdout=subprocess.PIPE, text=True)

    def run(self):
        for line in self.process.stdout:
            at, received = line.split()
            self.points.append((float(at), int(received)))

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.join()

    def rate_and_pauses(self):
        """The rate in Mbit/s, and the pauses in s between 1500 bytes and more, from the first data to half a second before the end."""
        base = self.points[0][1]
        begin = next((at for at, received in self.points if received > base + 20_000), self.points[0][0])
        last_at, last, pauses = begin, None, []
        for at, received in self.points:
            if not begin <= at <= begin + SECONDS - 0.5:
                continue
            if last is None or received > last + 1500:
                pauses.append(at - last_at)
                last_at, last = at, received
        return (self.points[-1][1] - base) * 8 / SECONDS / 1e6, pauses


def transfer(law, multipath):
    """One run of iperf3: the receiver's rate, the rate on path one, and its pauses."""
    wrapped = ["mptcpize", "run"] if multipath else []
    server = subprocess.Popen(within("h1", *wrapped, "iperf3", "-s", "-1"), stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    watch = Watch()
    watch.start()
    time.sleep(0.2)
    client = within("h0", *wrapped, "iperf3", "-c", address("h1", "one"), "-t", str(SECONDS), "-C", law, "-J")
    try:
        told = json.loads(run(*client, timeout=SECONDS + 60))
    finally:
        watch.stop()
        server.kill()
        server.wait()
    return told["end"]["sum_received"]["bits_per_second"] / 1e6, *watch.rate_and_pauses()


def main():
    runs = {}
    with laws():
        for number in range(ROUNDS):
            for loss in LOSSES:
                with links(loss):
                    for buffer in BUFFERS:
                        run(*within("h1", "sysctl", "-qw", f"net.ipv4.tcp_rmem=4096 131072 {buffer}"))
                        for law in LAWS:
                            # Over path one alone the loss of path two does not matter.
                            for multipath in [True] + [False] * (loss == 0):
                                case = (loss, buffer, law, multipath)
                                runs.setdefault(case, []).append(transfer(law, multipath))
                                rate, one, _ = runs[case][-1]
                                load = open("/proc/loadavg").read().split()[0]
                                print(f"round {number + 1} {case}: {rate:.1f}, path one {one:.1f}, load {load}", file=sys.stderr, flush=True)
    for (loss, buffer, law, multipath), found in runs.items():
        rates, ones, pauses = zip(*found)
        line = {
            "loss": loss, "buffer": buffer, "law": law, "multipath": multipath,
            "mbit_s": round(statistics.median(rates), 1),
            "rates": [round(rate, 1) for rate in rates],
            "path_one_mbit_s": round(statistics.median(ones), 1),
            "longest_pause_s": round(statistics.median(max(one, default=0) for one in pauses), 2),
            "pauses": sum(pause > PAUSE_S for one in pauses for pause in one),
        }
        print(json.dumps(line))


if __name__ == "__main__":
    main()
