#!/usr/bin/env python3
"""Measures UDP through `anabranch tunnel --local-udp` and beside it: name lookups, WireGuard, a game; each alone, and beside a download the same way.

    sudo experiments/udp/measure.py path/to/anabranch [seconds [losses, such as 0,0.01,0.05 [words of measures, such as tunnel,dns]]]

The link is that of link.toml, by `anabranch link`. iperf3 and dnsmasq are needed, and wireguard-go and wg for the measures of WireGuard, which are left out
without them. It prints one line of JSON for each case. "direct" is without the tunnel. A download is one TCP connection of iperf3. Delays are in
milliseconds; those of one way compare clocks of both hosts, which are one. "up" is from the client.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.abspath(sys.argv[1])
SECONDS = int(sys.argv[2]) if len(sys.argv) > 2 else 15
LOSSES = sys.argv[3].split(",") if len(sys.argv) > 3 else ["0", "0.01", "0.05"]
WORDS = sys.argv[4].split(",") if len(sys.argv) > 4 else []
SERVER = "10.77.2.1"
TCP, DNS, PROBE, WIREGUARD = 5201, 5353, 5300, 51820
HAS_WIREGUARD = bool(shutil.which("wireguard-go") and shutil.which("wg"))

# Sends `rate` packets a second of `size` bytes for some seconds, and reads those of the other end until it is silent: their delays.
# The end that waits learns by the first packet where the other one is.
EXCHANGE = """
import json, socket, struct, sys, threading, time
role, address, port, rate, size, seconds = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
seen, to, begun = {}, (address, port), threading.Event()
if role == "wait":
    s.bind((address, port))
else:
    begun.set()
    s.bind(("0.0.0.0", 0))
def read():
    global to
    s.settimeout(10)
    try:
        while True:
            data, sender = s.recvfrom(2000)
            number, sent = struct.unpack("!Id", data[:12])
            seen[number] = (time.time() - sent) * 1e3
            if not begun.is_set():
                to = sender
                begun.set()
            s.settimeout(3)
    except TimeoutError:
        pass
reader = threading.Thread(target=read)
reader.start()
begun.wait(10)
begin = time.time()
for number in range(seconds * rate):
    time.sleep(max(0, begin + number / rate - time.time()))
    s.sendto(struct.pack("!Id", number, time.time()).ljust(size, b"."), to)
reader.join()
print(json.dumps([seen[number] for number in sorted(seen)]))
"""

# Asks for a new name each 100 ms, and asks again after a second, as resolvers do, three times in all.
RESOLVER = """
import json, socket, struct, sys, threading, time
address, port, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 0))
asked, answered, again = {}, {}, set()
def question(number):
    name = b"".join(bytes([len(label)]) + label for label in (b"n%d" % number, b"example", b"org")) + b"\\0"
    return struct.pack("!6H", number, 0x100, 1, 0, 0, 0) + name + struct.pack("!2H", 1, 1)
def read():
    s.settimeout(4)
    try:
        while True:
            number, flags, _, answers = struct.unpack("!4H", s.recv(2000)[:8])
            if flags & 0x8000 and answers and number not in answered:
                answered[number] = (time.time() - asked[number]) * 1e3
    except TimeoutError:
        pass
reader = threading.Thread(target=read)
reader.start()
begin, count = time.time(), seconds * 10
for tick in range(count + 20):
    time.sleep(max(0, begin + tick / 10 - time.time()))
    for attempt in range(3):
        number = tick - 10 * attempt
        if 0 <= number < count and number not in answered:
            again |= {number} if attempt else set()
            asked.setdefault(number, time.time())
            s.sendto(question(number), (address, port))
reader.join()
print(json.dumps([sorted(answered.values()), len(again), count - len(answered)]))
"""


def link(*arguments):
    return subprocess.run([PROGRAM, "link", *arguments], check=True, capture_output=True, text=True).stdout


def within(host, *command):
    return ["ip", "netns", "exec", f"anabranch.udp.{host}", *command]


def run(host, *command, **options):
    return subprocess.run(within(host, *command), check=True, capture_output=True, text=True, **options).stdout


def quantiles(delays):
    delays = sorted(delays)
    at = lambda part: round(delays[min(len(delays) - 1, int(part * len(delays)))], 1) if delays else None
    return {"p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1)}


def one_way(delays, sent):
    changes = [abs(after - before) for before, after in zip(delays, delays[1:])]
    jitter = round(sum(changes) / max(1, len(changes)), 2)
    return {**quantiles(delays), "jitter_ms": jitter, "lost_percent": round(100 * (1 - len(delays) / sent), 2)}


def exchange(address, port, rate, size, bind="0.0.0.0", at=PROBE):
    """Packets both ways at once."""
    numbers = [str(number) for number in (rate, size, SECONDS)]
    there = subprocess.Popen(within("h1", sys.executable, "-c", EXCHANGE, "wait", bind, str(at), *numbers), stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    down = json.loads(run("h0", sys.executable, "-c", EXCHANGE, "call", address, str(port), *numbers))
    up = json.loads(there.communicate(timeout=30)[0])
    return {"up": one_way(up, rate * SECONDS), "down": one_way(down, rate * SECONDS)}


def names(address, port):
    answered, again, lost = json.loads(run("h0", sys.executable, "-c", RESOLVER, address, str(port), str(SECONDS)))
    return {**quantiles(answered), "asked_again": again, "unanswered": lost, "of": 10 * SECONDS}


def download(address, port, seconds, begin=lambda: None):
    """One TCP connection from h1 to h0, in Mbit/s."""
    there = subprocess.Popen(within("h1", "iperf3", "-s", "-1", "-p", str(TCP)), stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    begin()
    document = run("h0", "iperf3", "-c", address, "-p", str(port), "-t", str(seconds), "-R", "-J", timeout=seconds + 30)
    there.wait(10)
    return round(json.loads(document)["end"]["sum_received"]["bits_per_second"] / 1e6, 1)


def beside(measure, address, port):
    """A measure during a download."""
    result = {}
    thread = threading.Thread(target=lambda: result.update(download_mbit_s=download(address, port, SECONDS + 7)))
    thread.start()
    time.sleep(3.5)
    measured = measure()
    thread.join()
    return {**measured, **result}


class WireGuard:
    """A network of WireGuard between both hosts, whose packets go to this address and port. `mtu` is that of its devices."""

    def __init__(self, address, port, mtu, folder):
        self.running, self.mtu = [], mtu
        keys = {}
        for host in ("h0", "h1"):
            private = subprocess.run(["wg", "genkey"], check=True, capture_output=True, text=True).stdout
            public = subprocess.run(["wg", "pubkey"], input=private, check=True, capture_output=True, text=True).stdout.strip()
            keys[host] = (f"{folder}/{host}.key", public)
            with open(keys[host][0], "w", encoding="utf8") as file:
                file.write(private)
        for host, other, own, end in (("h1", "h0", "10.91.0.1", []), ("h0", "h1", "10.91.0.2", ["endpoint", f"{address}:{port}"])):
            device = f"wgudp{host}"
            self.running.append(subprocess.Popen(within(host, "wireguard-go", "-f", device), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            while not os.path.exists(f"/run/wireguard/{device}.sock"):
                time.sleep(0.1)
            listen = ["listen-port", str(WIREGUARD)] if host == "h1" else []
            run(host, "wg", "set", device, "private-key", keys[host][0], *listen, "peer", keys[other][1], "allowed-ips", "10.91.0.0/24", *end)
            run(host, "ip", "address", "add", f"{own}/24", "dev", device)
            run(host, "ip", "link", "set", device, "mtu", str(mtu), "up")
        # The handshake is not measured.
        hello = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'hello', ('10.91.0.1', 9))"
        run("h0", sys.executable, "-c", hello)
        time.sleep(1)

    def packets(self):
        # Full packets, without the headers of IP and UDP, at 5 Mbit/s.
        return exchange("10.91.0.1", PROBE, 5_000_000 // 8 // self.mtu, self.mtu - 28)

    def close(self):
        for process in self.running:
            stop(process)


def stop(process):
    process.send_signal(signal.SIGINT)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()


def measures(way, folder, tcp, dns, probe, wireguard):
    """What is measured over a way to the server: its address and port for each program."""
    measured = [("dns", lambda: names(*dns)), ("game", lambda: exchange(*probe, 60, 80))]
    if HAS_WIREGUARD:
        for mtu in (1280, 1420):
            measured.append((f"wireguard of {mtu}", lambda mtu=mtu: through(wireguard, mtu, folder, lambda network: network.packets())))
    for name, measure in measured:
        yield name, measure
        yield f"{name} beside a download", lambda measure=measure: beside(measure, *tcp)
    if HAS_WIREGUARD:
        inside = lambda network: {"mbit_s": download("10.91.0.1", TCP, SECONDS)}
        yield "tcp in wireguard of 1280", lambda: through(wireguard, 1280, folder, inside)
    yield "download", lambda: {"mbit_s": download(*tcp, SECONDS)}


def through(wireguard, mtu, folder, act):
    network = WireGuard(*wireguard, mtu, folder)
    try:
        return act(network)
    finally:
        network.close()


def show(loss, way, *where):
    for measure, act in measures(way, *where):
        if all(word in f"{way} {measure}" for word in WORDS):
            print(json.dumps({"loss": loss, "way": way, "measure": measure, **act()}), flush=True)


def case(loss, folder):
    text = open(f"{HERE}/link.toml", encoding="utf8").read().replace("rate = 0.0 ", f"rate = {loss} ")
    file = f"{folder}/udp.toml"
    with open(file, "w", encoding="utf8") as written:
        written.write(text)
    link("up", file)
    running = []
    try:
        # It answers every name, as a name server in the office does that has the answer.
        server = ["dnsmasq", "-k", "-C", "/dev/null", "-u", "root", "-p", str(DNS), "-h", "-R", "--address=/#/192.0.2.1", f"--pid-file={folder}/pid"]
        running.append(subprocess.Popen(within("h1", *server), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        show(loss, "direct", folder, (SERVER, TCP), (SERVER, DNS), (SERVER, PROBE), (SERVER, WIREGUARD))
        udp = [f"--to-udp=127.0.0.1:{port}" for port in (DNS, PROBE, WIREGUARD)]
        serve = within("h1", PROGRAM, "tunnel", "serve", "--to", f"127.0.0.1:{TCP}", *udp, "--json")
        running.append(subprocess.Popen(serve, stdout=subprocess.PIPE, text=True))
        ticket = json.loads(running[-1].stdout.readline())["ticket"]
        local = [f"--local-udp=127.0.0.1:{port}:127.0.0.1:{port}" for port in (DNS, PROBE, WIREGUARD)]
        call = within("h0", PROGRAM, "tunnel", ticket, f"--local=127.0.0.1:{TCP}:127.0.0.1:{TCP}", *local, "--json")
        running.append(subprocess.Popen(call, stdout=subprocess.PIPE, text=True))
        while json.loads(running[-1].stdout.readline())["event"] != "connected":
            pass
        time.sleep(2)
        here = "127.0.0.1"
        show(loss, "tunnel", folder, (here, TCP), (here, DNS), (here, PROBE), (here, WIREGUARD))
    finally:
        for process in reversed(running):
            stop(process)
        link("down", "udp")


with tempfile.TemporaryDirectory() as folder:
    for loss in LOSSES:
        case(loss, folder)
