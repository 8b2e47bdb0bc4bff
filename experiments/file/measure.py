#!/usr/bin/env python3
"""Measures one big file by `anabranch send`, scp and rsync over ssh, beside `anabranch bench`: on loopback, and over the link of link.toml.

    sudo experiments/file/measure.py path/to/anabranch [rounds [megabytes on loopback [megabytes over the link]]]

The file lies in memory at both ends (/dev/shm). scp, rsync and sshd are needed; sshd runs with keys of its own, and takes no part in the one of the system.
The programs take turns. It prints one line of JSON for each way: for each program the median rate in Mbit/s of all rounds, the least and the most. A time begins
with the command and ends with it, so it has the set-up of the connection in it; that of `bench` (3 s, over the link 10 s) does not.
"""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.abspath(sys.argv[1])
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
LOOPBACK_MB = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
LINK_MB = int(sys.argv[4]) if len(sys.argv) > 4 else 100
SSH_PORT = 2022


def within(host, *command):
    return [*(["ip", "netns", "exec", f"anabranch.file.{host}"] if host else []), *command]


@contextlib.contextmanager
def running(host, *command, **options):
    with subprocess.Popen(within(host, *command), **options) as process:
        try:
            yield process
        finally:
            process.terminate()


@contextlib.contextmanager
def served(host, *command):
    """A server of ours, and the ticket that it prints."""
    with running(host, PROGRAM, *command, "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        yield json.loads(server.stdout.readline())["ticket"]


@contextlib.contextmanager
def sshd(host, folder):
    os.makedirs("/run/sshd", exist_ok=True)
    for name in ("host", "user"):
        if not os.path.exists(f"{folder}/{name}"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{name}"], check=True)
    settings = {
        "Port": SSH_PORT, "HostKey": f"{folder}/host", "PidFile": "none", "AuthorizedKeysFile": f"{folder}/user.pub",
        "StrictModes": "no", "PermitRootLogin": "yes", "UsePAM": "no", "Subsystem": "sftp internal-sftp",
    }
    with open(f"{folder}/sshd_config", "w", encoding="utf8") as file:
        file.writelines(f"{key} {value}\n" for key, value in settings.items())
    with running(host, shutil.which("sshd"), "-D", "-e", "-f", f"{folder}/sshd_config", stderr=subprocess.DEVNULL):
        time.sleep(1)
        yield ["-i", f"{folder}/user", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]


def timed(host, target, name, *command):
    """The time of a command, after which the file is there."""
    begin = time.monotonic()
    subprocess.run(within(host, *command), check=True, stdout=subprocess.DEVNULL, timeout=600)
    took = time.monotonic() - begin
    assert os.path.getsize(f"{target}/{name}") == os.path.getsize(f"{target}/../{name}"), f"{command[0]}: the file is not there"
    os.remove(f"{target}/{name}")
    return took


def show(way, address, hosts, megabytes, seconds, folder):
    here, there = hosts
    name, target = "big", f"{folder}/there"
    os.makedirs(target, exist_ok=True)
    with open(f"{folder}/{name}", "wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(1_000_000))
    rates = {}
    with sshd(there, folder) as options, served(there, "recv", "--listen", f"{address}:0", "--to", target) as recv, served(there, "bench", "serve", "--listen", f"{address}:0") as bench:
        shell = " ".join(["ssh", "-p", str(SSH_PORT), *options])
        programs = {
            "send": lambda: timed(here, target, name, PROGRAM, "send", f"{folder}/{name}", recv),
            "scp": lambda: timed(here, target, name, "scp", "-q", "-P", str(SSH_PORT), *options, f"{folder}/{name}", f"root@{address}:{target}/"),
            "rsync": lambda: timed(here, target, name, "rsync", "-W", "-e", shell, f"{folder}/{name}", f"root@{address}:{target}/"),
        }
        for _ in range(ROUNDS):
            document = subprocess.run(within(here, PROGRAM, "bench", bench, "--time", str(seconds), "--json"), check=True, capture_output=True, text=True).stdout
            rates.setdefault("bench", []).append(json.loads(document)["bits_per_second"] / 1e6)
            for program, run in programs.items():
                rates.setdefault(program, []).append(8 * megabytes / run())
    all_of = {program: [round(each) if each > 100 else round(each, 1) for each in (statistics.median(of), min(of), max(of))] for program, of in rates.items()}
    print(json.dumps({"way": way, "megabytes": megabytes, "mbit_s": all_of}), flush=True)


def over_link(loss, folder):
    text = open(f"{HERE}/link.toml", encoding="utf8").read().replace("rate = 0.0 ", f"rate = {loss} ")
    file = f"{folder}/file.toml"
    with open(file, "w", encoding="utf8") as written:
        written.write(text)
    subprocess.run([PROGRAM, "link", "up", file], check=True, capture_output=True)
    try:
        show(f"100 Mbit/s, 100 ms, {float(loss):.1%} lost", "10.77.2.1", ("h0", "h1"), LINK_MB, 10, folder)
    finally:
        subprocess.run([PROGRAM, "link", "down", file], check=True, capture_output=True)


with tempfile.TemporaryDirectory(dir="/dev/shm") as base:
    show("loopback", "127.0.0.1", (None, None), LOOPBACK_MB, 3, base)
    for lost in ("0", "0.001"):
        over_link(lost, base)
