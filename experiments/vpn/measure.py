#!/usr/bin/env python3
"""Measures `anabranch tunnel vpn` over one of two links and over both: TCP, UDP, and a video call, alone and beside TCP.

    sudo experiments/vpn/measure.py path/to/anabranch [seconds [near,far,both [words of measures, such as vpn,tcp up]]]

The links are those of links.toml, by `anabranch link`; iperf3 is needed. It prints one line of JSON for each case.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.abspath(sys.argv[1])
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 20
CASES = sys.argv[3].split(",") if len(sys.argv) > 3 else ["near", "far", "both"]
WORDS = sys.argv[4].split(",") if len(sys.argv) > 4 else []
SERVER, PORT = "10.90.0.1", 5201


def link(*arguments, **options):
    return subprocess.run([PROGRAM, "link", *arguments], check=True, capture_output=True, text=True, **options).stdout


def within(host, *command):
    return ["ip", "netns", "exec", f"anabranch.vpn.{host}", *command]


def iperf(server, *options):
    """One run of iperf3 from h0; the server answers one test."""
    there = subprocess.Popen(within("h1", "iperf3", "-s", "-1", "-p", str(PORT)), stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    here = within("h0", "iperf3", "-c", server, "-p", str(PORT), "-t", str(SECONDS), "-J", *options)
    document = json.loads(subprocess.run(here, capture_output=True, text=True, timeout=SECONDS + 30).stdout)
    there.wait(10)
    return document["end"]


def call(server, seconds):
    """50 packets a second of 1,200 bytes from h0 to h1, as a video call sends: the delay of each, in milliseconds, and how many are lost."""
    script = f"""
import socket, struct, time, json
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 5300)); s.settimeout(3)
seen = {{}}
try:
    while True:
        data = s.recv(2000)
        number, sent = struct.unpack("!Id", data[:12])
        seen[number] = (time.time() - sent) * 1e3
except TimeoutError:
    pass
print(json.dumps(seen))
"""
    there = subprocess.Popen(within("h1", sys.executable, "-c", script), stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    script = f"""
import socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begin = time.time()
for number in range({seconds} * 50):
    time.sleep(max(0, begin + number / 50 - time.time()))
    s.sendto(struct.pack("!Id", number, time.time()).ljust(1200, b"."), ("{server}", 5300))
"""
    subprocess.run(within("h0", sys.executable, "-c", script), check=True)
    seen = json.loads(there.communicate(timeout=20)[0])
    delays = sorted(seen.values())
    at = lambda part: round(delays[min(len(delays) - 1, int(part * len(delays)))], 1)
    return {"p50_ms": at(0.5), "p95_ms": at(0.95), "p99_ms": at(0.99), "max_ms": at(1), "lost": seconds * 50 - len(delays)}


def beside(server, *options):
    """A call during a run of TCP."""
    result = {}
    thread = threading.Thread(target=lambda: result.update(iperf(server, *options)))
    thread.start()
    time.sleep(2.5)
    measured = call(server, SECONDS - 5)
    thread.join()
    return {**measured, "tcp_mbit_s": rate(result)}


def rate(end):
    return round(end["sum_received"]["bits_per_second"] / 1e6, 1)


def measures(server, total):
    yield "tcp up", lambda: {"mbit_s": rate(end := iperf(server)), "retransmits": end["sum_sent"]["retransmits"]}
    yield "tcp down", lambda: {"mbit_s": rate(end := iperf(server, "-R")), "retransmits": end["sum_sent"]["retransmits"]}
    yield "4 tcp up", lambda: {"mbit_s": rate(end := iperf(server, "-P", "4")), "retransmits": end["sum_sent"]["retransmits"]}
    wanted = str(int(total * 0.8))

    def udp():
        end = iperf(server, "-u", "-b", wanted + "M", "-l", "1200")["sum"]
        return {"sent_mbit_s": int(wanted), "lost_percent": round(end["lost_percent"], 2), "jitter_ms": round(end["jitter_ms"], 2)}

    yield "udp at 80 %", udp
    yield "call", lambda: call(server, SECONDS)
    yield "call beside tcp up", lambda: beside(server)


def show(links, way, server, total):
    for measure, run in measures(server, total):
        if all(word in f"{way} {measure}" for word in WORDS):
            print(json.dumps({"links": links, "way": way, "measure": measure, **run()}), flush=True)


def document(names):
    """The scenario with these links only."""
    text = open(f"{HERE}/links.toml", encoding="utf8").read()
    parts = re.split(r"(?=^\[\[)", text, flags=re.MULTILINE)
    return "".join(part for part in parts if not part.startswith("[[link]]") or any(f'"{name}"' in part for name in names))


def case(name, folder):
    links = ["near", "far"] if name == "both" else [name]
    total = sum({"near": 20, "far": 50}[link] for link in links)
    file = f"{folder}/vpn.toml"
    open(file, "w", encoding="utf8").write(document(links))
    link("up", file)
    running = []
    try:
        if len(links) == 1:
            show(name, "direct", "10.77.2.1", total)
        serve = within("h1", PROGRAM, "tunnel", "serve", "--vpn", f"{SERVER}/24", "--json")
        running.append(subprocess.Popen(serve, stdout=subprocess.PIPE, text=True))
        ticket = json.loads(running[0].stdout.readline())["ticket"]
        join = within("h0", PROGRAM, "tunnel", "vpn", ticket, "--json", *(["--multipath"] if len(links) > 1 else []))
        running.append(subprocess.Popen(join, stdout=subprocess.PIPE, text=True))
        told = json.loads(running[1].stdout.readline())
        assert told["paths"] == len(links), told
        time.sleep(2)
        show(name, "vpn", SERVER, total)
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGINT)
            process.wait(10)
        link("down", "vpn")


with tempfile.TemporaryDirectory() as folder:
    for name in CASES:
        case(name, folder)
