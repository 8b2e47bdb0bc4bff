#!/usr/bin/env python3
"""Measures `anabranch bench` between processes that are pinned to two cores, each in a network namespace, over veth pairs.

    sudo experiments/cores/measure.py path/to/anabranch [rounds [seconds]]

The cases take turns. It prints a row of Markdown for each: the rate of all connections together, and the processor time of all processes for a byte,
kernel included; medians, with least and most. Processes run at nice -10, so that other work disturbs little.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys

PROGRAM = os.path.abspath(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
SECONDS = sys.argv[3] if len(sys.argv) > 3 else "3"

# The cores of each server, and of each client with the number of its server.
CASES = {
    "one server and its client, both on core 0": (["0"], [("0", 0)]),
    "one server on core 0, its client on core 1": (["0"], [("1", 0)]),
    "two servers and their clients, each pair on a core": (["0", "1"], [("0", 0), ("1", 1)]),
    "two servers on core 0, their clients on core 1": (["0", "0"], [("1", 0), ("1", 1)]),
    "two servers, each with its client on the other core": (["0", "1"], [("1", 0), ("0", 1)]),
    "one server on both cores, a client on each": (["0,1"], [("0", 0), ("1", 0)]),
}


def name(role, number):
    return f"anabranch.cores.{role}{number}"


def ip(*command):
    subprocess.run(["ip", *command], check=True)


@contextlib.contextmanager
def network():
    """Two namespaces for servers and two for clients; each server has a link to each client."""
    names = [name(role, number) for role in "sc" for number in range(2)]
    try:
        for each in names:
            ip("netns", "add", each)
        for server in range(2):
            for client in range(2):
                ends = [(name("s", server), f"to{client}", 1), (name("c", client), f"to{server}", 2)]
                ip("link", "add", ends[0][1], "netns", ends[0][0], "type", "veth", "peer", "name", ends[1][1], "netns", ends[1][0])
                for host, link, last in ends:
                    ip("-n", host, "addr", "add", f"10.77.{10 * server + client}.{last}/24", "dev", link)
                    ip("-n", host, "link", "set", link, "up")
        yield
    finally:
        for each in names:
            subprocess.run(["ip", "netns", "del", each], check=False, stderr=subprocess.DEVNULL)


def start(host, cores, *command):
    pinned = ["nice", "-n", "-10", "ip", "netns", "exec", host, "taskset", "-c", cores, PROGRAM, *command]
    return subprocess.Popen(pinned, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def measure(servers, clients):
    """Gbit/s and s/GB of one round."""
    before = os.times()
    running = []
    for number, cores in enumerate(servers):
        own = [client for client, (_, server) in enumerate(clients) if server == number]
        address = f"10.77.{10 * number + own[0]}.1" if len(own) == 1 else "0.0.0.0"
        running.append(start(name("s", number), cores, "bench", "serve", "--listen", f"{address}:0", "--json"))
    tickets = [json.loads(server.stdout.readline())["ticket"] for server in running]
    calling = [start(name("c", number), cores, "bench", tickets[server], "--time", SECONDS, "--json") for number, (cores, server) in enumerate(clients)]
    documents = [json.loads(client.communicate(timeout=60)[0]) for client in calling]
    for server in running:
        server.terminate()
        server.wait()
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return sum(each["bits_per_second"] for each in documents) / 1e9, used * 1e9 / sum(each["bytes"] for each in documents)


with network():
    measured = {case: [] for case in CASES}
    for _ in range(ROUNDS):
        for case, (servers, clients) in CASES.items():
            measured[case].append(measure(servers, clients))
for case, rounds in measured.items():
    cells = [f"{statistics.median(of):.2f} ({min(of):.2f} to {max(of):.2f})" for of in zip(*rounds)]
    print(f"| {case} | {' | '.join(cells)} |")
