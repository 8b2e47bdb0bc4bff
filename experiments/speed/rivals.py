#!/usr/bin/env python3
"""Measures `highspeed` by anabranch, by htsim and by ns-2.

    experiments/speed/rivals.py path/to/anabranch path/to/htsim/sim [rounds]

htsim (github.com/Broadcom/csg-htsim) must be built in that folder with its Makefile; g++, valgrind and ns-2 (`ns`, Debian's package ns2) are needed. The programs
take turns with 100 s of the network. It prints a line of JSON for each: the median of its user CPU seconds with the least and the most, its bottleneck packets, and
its instructions for one of them, those of the second five seconds under callgrind, so that the set-up of a program does not count.
"""

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM, HTSIM = (os.path.abspath(path) for path in sys.argv[1:3])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5


def of_ours(output):
    return next(link["forwarded_packets"] for link in json.loads(output)["links"] if link["id"] == "bottleneck")


def of_others(output):
    return int(re.search(r"packets (\d+)", output)[1])


def run(command):
    """The output of a command, and its user CPU time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return output, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def instructions(command, packets):
    """The instructions and the packets of a command."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run([*valgrind, *command], check=True, capture_output=True, text=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1]), packets(done.stdout)


with tempfile.TemporaryDirectory() as folder:
    htsim = f"{folder}/highspeed"
    subprocess.run(["g++", "-std=c++11", "-O3", "-I", HTSIM, f"{HERE}/highspeed.cpp", f"{HTSIM}/libhtsim.a", "-o", htsim], check=True)
    ours = [PROGRAM, "sim", "run", f"{HERE}/highspeed.toml", "--json", "--set"]
    programs = {
        "anabranch": (lambda seconds: [*ours, f"duration={seconds}s"], of_ours),
        "htsim": (lambda seconds: [htsim, str(seconds)], of_others),
        "ns-2": (lambda seconds: ["ns", f"{HERE}/highspeed.tcl", str(seconds)], of_others),
    }
    times, carried = {name: [] for name in programs}, {}
    for _ in range(ROUNDS):
        for name, (command, packets) in programs.items():
            output, seconds = run(command(100))
            times[name].append(seconds)
            carried[name] = packets(output)
    for name, (command, packets) in programs.items():
        (early, few), (late, many) = (instructions(command(seconds), packets) for seconds in (5, 10))
        user = [round(each, 2) for each in (statistics.median(times[name]), min(times[name]), max(times[name]))]
        each = round((late - early) / (many - few))
        print(json.dumps({"program": name, "user_s": user, "packets": carried[name], "instructions": each}), flush=True)
