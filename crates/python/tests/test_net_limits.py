"""The transport for asyncio beside slow readers, other threads, other loops, silent peers, and ends of programs."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import anabranch as ab
from network import SOON, connected, echo, pattern, run

net = ab.net


async def test_a_slow_reader_stops_the_peer():
    async def stream_until(stream, size):
        while size > 0:
            chunk = await stream.read(min(size, 100_000))
            size -= len(chunk)
            yield chunk

    limits = {"receive_buffer": 1 << 20, "receive_buffer_max": 1 << 20, "send_buffer": 1 << 18}
    limits["send_buffer_max"] = 1 << 18
    _, there, here = await connected(server=limits, client=limits)
    out = await there.open_stream()
    writing = asyncio.create_task(out.write(bytes(50_000_000)))
    done, _ = await asyncio.wait([writing], timeout=0.5)
    assert not done
    # What waits there, and what waits here.
    assert out.written <= (1 << 20) + (1 << 18)
    assert here.stats()["bytes_unread"] <= 1 << 20
    stopped_at = out.written
    await asyncio.sleep(0.1)
    assert out.written == stopped_at
    stream = await here.accept_stream()
    assert sum([len(chunk) async for chunk in stream_until(stream, 50_000_000)]) == 50_000_000
    await writing


async def test_streams_that_are_not_read_hold_up_no_other():
    """Two thousand streams of 10 MB each, of which nothing is read. Another one of 30 MB takes hardly longer than alone."""
    _, there, here = await connected()

    async def transfer():
        begin = time.monotonic()
        out = await there.open_stream()
        writing = asyncio.create_task(out.write(bytes(30_000_000)))
        stream, size = await here.accept_stream(), 0
        while size < 30_000_000:
            size += len(await stream.read(1 << 20))
        await writing
        return time.monotonic() - begin

    alone = min([await transfer(), await transfer()])
    outs = [await there.open_stream() for _ in range(2000)]
    much = bytes(10_000_000)
    writing = [asyncio.create_task(out.write(much)) for out in outs]
    still = [await here.accept_stream() for _ in outs]
    beside = min([await transfer(), await transfer()])
    # A stream whose number the first transfers had has their credit.
    assert len(still) == 2000 and sum(task.done() for task in writing) <= 2
    # A busy machine takes some time more.
    assert beside < alone / 0.9 + 0.3, f"{beside} s beside them, {alone} s alone"
    for task in writing:
        task.cancel()
    await asyncio.wait(writing)


async def test_a_busy_stream_leaves_turns_to_others():
    """All data is there, so that no read waits; other tasks have a turn after 16 reads nevertheless."""
    _, there, here = await connected()
    out = await there.open_stream()
    # No more than the first credit of a stream, 32 kB.
    await out.write(bytes(30_000))
    while here.stats()["bytes_unread"] < 30_000:
        await asyncio.sleep(0.01)
    turns = 0

    async def turn():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    stream = await here.accept_stream()
    for _ in range(10_000):
        assert len(await stream.read_exactly(3)) == 3
    turning.cancel()
    assert 10_000 / 16 - 2 <= turns < 10_000


async def test_other_threads_run_while_a_task_waits():
    _, there, here = await connected()
    counted = [0]
    over = threading.Event()

    def count():
        while not over.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(here.accept(), 0.2)
    at_work = counted[0] - before
    # And a ping comes back meanwhile: the thread of the network needs no lock of Python's.
    await there.open_stream()
    over.set()
    thread.join()
    assert at_work > 10_000


async def test_the_network_goes_on_while_python_computes():
    """The loop of this thread is blocked for a second; the peer's keep-alive probes are still answered."""
    _, there, here = await connected(client={"idle_timeout": 0.6, "keep_alive": 0.2}, server={"idle_timeout": 0.6})
    time.sleep(1.5)
    await there.send_message(b"still here")
    assert await here.accept_message() == b"still here"


async def test_a_hundred_connections_on_one_loop():
    server = await net.listen("127.0.0.1:0", connections_per_key=100, connections_per_address=100)
    serving = asyncio.create_task(echo(server))
    client = await net.listen("127.0.0.1:0")

    async def ask(number):
        async with await client.connect(server.ticket) as connection:
            async def one(part):
                async with await connection.open() as stream:
                    await stream.write(b"%d %d" % (number, part) * 100)
                    await stream.finish()
                    assert await stream.read() == b"%d %d" % (number, part) * 100

            await asyncio.gather(*map(one, range(5)))

    await asyncio.gather(*map(ask, range(100)))
    server.close()
    await serving


async def test_one_task_reads_a_stream_at_a_time():
    _, there, here = await connected()
    out = await there.open_stream()
    await out.write(b"1")
    stream = await here.accept_stream()
    await stream.read(1)
    first = asyncio.create_task(stream.read(1))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="another task already reads"):
        await stream.read(1)
    # One may write while another waits for the end.
    watching = asyncio.create_task(out.stopped())
    await asyncio.sleep(0)
    await out.write(b"2")
    assert await first == b"2"
    await out.finish()
    assert await stream.read() == b"" and await watching is None


# ---- The end


async def test_close_waits_for_the_delivery():
    _, there, here = await connected()
    sent = pattern(6, 5_000_000)

    async def receive():
        await asyncio.sleep(0.2)
        return await here.accept_message()

    receiving, begin = asyncio.create_task(receive()), time.perf_counter()
    out = await there.open_stream()
    await out.write(sent)
    await there.close()
    assert await receiving == sent
    with pytest.raises(net.ClosedError, match="closed to new streams"):
        await there.open_stream()
    with pytest.raises(net.ClosedError, match="the stream is closed"):
        await out.write(b"x")
    with pytest.raises(net.ClosedError):
        await here.accept_stream()
    await here.close()
    await asyncio.gather(here.closed(), there.closed())
    assert time.perf_counter() - begin < SOON


async def test_closed_objects_refuse_use():
    server, there, here = await connected()
    waiting = asyncio.create_task(server.accept())
    await asyncio.sleep(0)
    server.close()
    with pytest.raises(net.ClosedError, match="the endpoint is closed"):
        await waiting
    for use in [lambda: server.ticket, lambda: server.addresses, lambda: server.add_address("127.0.0.1:0")]:
        with pytest.raises(net.ClosedError):
            use()
    with pytest.raises(net.ClosedError):
        await server.accept()
    assert [connection async for connection in server] == []
    # Connections go on.
    out = await there.open_stream()
    await out.write(b"1")
    stream = await here.accept_stream()
    reading = asyncio.create_task(stream.read())
    await asyncio.sleep(0.05)
    stream.stop()
    with pytest.raises(net.ClosedError):
        await reading
    with pytest.raises(net.ClosedError):
        await stream.read(1)
    there.abort()
    with pytest.raises(net.LostError, match="aborted here") as lost:
        await out.write(b"2")
    assert lost.value.reason == "aborted" and isinstance(lost.value, ConnectionError)
    with pytest.raises(net.LostError, match="reset the connection") as lost:
        await here.accept_stream()
    assert lost.value.reason == "reset"


class Relay(asyncio.DatagramProtocol):
    """Carries datagrams between one client and a server, until it is told to lose them."""

    def __init__(self, target):
        self.target, self.client, self.loses = target, None, False

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, sender):
        if sender != self.target:
            self.client = sender
        if not self.loses:
            self.transport.sendto(data, self.client if sender == self.target else self.target)


async def test_a_silent_peer_is_given_up():
    server = await net.listen("127.0.0.1:0")
    host, port = server.addresses[0].rsplit(":", 1)
    relay, loop = Relay((host, int(port))), asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: relay, ("127.0.0.1", 0))
    ticket = net.Ticket.of(server.key, ["127.0.0.1:%d" % transport.get_extra_info("sockname")[1]])
    there, here = await asyncio.gather(net.connect(ticket, idle_timeout=0.6, keep_alive=0.2), server.accept())
    await there.send_message(b"heard")
    assert await here.accept_message() == b"heard"
    # Keep-alive probes hold an idle connection.
    await asyncio.sleep(1)
    assert there.paths()[0]["state"] == "live"
    relay.loses, begin = True, time.perf_counter()
    with pytest.raises(net.LostError, match="no longer answers") as lost:
        await there.accept_message()
    assert lost.value.reason == "timed_out" and 0.3 < time.perf_counter() - begin < 3
    transport.close()


async def test_an_abandoned_handle_leaks_nothing():
    def descriptors():
        return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    server = await net.listen("127.0.0.1:0")

    async def one():
        there, here = await asyncio.gather(net.connect(server.ticket), server.accept())
        stream = await there.open()
        await stream.write(b"left alone")
        asked = await here.accept()
        # A cycle, which only the collector finds.
        cycle = [there, stream]
        cycle.append(cycle)
        del there, stream, cycle
        gc.collect()
        with pytest.raises(net.ResetError):
            await asked.read()
        with pytest.raises(net.ClosedError):
            await here.accept()

    await one()
    gc.collect()
    await asyncio.sleep(4)
    before = descriptors(), sum(isinstance(it, net.Connection) for it in gc.get_objects())
    for _ in range(10):
        await one()
    gc.collect()
    # The client's sockets go when its connections are over: two seconds, or three if the peer never closes.
    await asyncio.sleep(4)
    assert (descriptors(), sum(isinstance(it, net.Connection) for it in gc.get_objects())) == before


def test_an_interpreter_ends_at_once():
    """With connections, with a task that waits, and with data on its way."""
    code = """
        import asyncio, anabranch as ab
        async def main():
            server = await ab.net.listen("127.0.0.1:0")
            there, here = await asyncio.gather(ab.net.connect(server.ticket), server.accept())
            global kept, loop, pending
            kept = (server, there, here)
            out = await there.open_stream()
            pending = asyncio.ensure_future(out.write(bytes(200_000_000)))
            await asyncio.sleep(0.2)
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        print("the end")
    """
    begin = time.perf_counter()
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=SOON)
    assert ended.returncode == 0 and "the end" in ended.stdout, ended
    assert time.perf_counter() - begin < 10


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_ctrl_c_ends_a_program_that_waits():
    code = """
        import asyncio, anabranch as ab
        async def main():
            server = await ab.net.listen("127.0.0.1:0")
            print(server.ticket, flush=True)
            async for connection in server:
                pass
        asyncio.run(main())
    """
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert program.stdout.readline().startswith("ab1")
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=SOON)
    assert "KeyboardInterrupt" in errors and "panick" not in errors, errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_write_of_forked_child_raises():
    """The child has no thread that sends, so its data would be accepted and never leave."""

    async def main():
        server, there, here = await connected()
        out = await there.open_stream()
        child = os.fork()
        if child == 0:
            codes = []
            for action in (lambda: out.write(b"lost"), lambda: there.open_stream(), lambda: server.accept()):
                try:
                    asyncio.run(action())
                    codes.append(1)
                except net.ClosedError as error:
                    codes.append(0 if "is a fork of it" in str(error) else 2)
                except BaseException:
                    codes.append(3)
            os._exit(max(codes))
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        await out.write(b"kept")
        await out.finish()
        stream = await here.accept_stream()
        assert await stream.read() == b"kept"

    run(main())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_a_network_of_its_own():
    code = """
        import asyncio, os, anabranch as ab
        async def talk():
            server = await ab.net.listen("127.0.0.1:0")
            there, here = await asyncio.gather(ab.net.connect(server.ticket), server.accept())
            await there.send_message(b"hello")
            assert await asyncio.wait_for(here.accept_message(), 10) == b"hello"
        asyncio.run(talk())
        child = os.fork()
        asyncio.run(talk())
        if child:
            assert os.waitpid(child, 0)[1] == 0
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=SOON)
    assert ended.returncode == 0, ended


def test_a_loop_that_watches_no_sockets_is_refused():
    class Proactor(asyncio.SelectorEventLoop):
        def add_reader(self, *_):
            raise NotImplementedError

    loop = Proactor()
    try:
        with pytest.raises(net.NetError, match="SelectorEventLoop"):
            loop.run_until_complete(net.connect(net.Ticket.of(net.Key.generate().public, ["127.0.0.1:9"])))
    finally:
        loop.close()


def test_a_handle_serves_several_loops():
    """Each loop has a bell of its own; two threads use the ends of one connection."""
    made = {}

    async def make():
        made["server"], made["there"], made["here"] = await connected()

    async def send():
        await made["there"].send_message(pattern(7, 1_000_000))

    async def receive():
        return await made["here"].accept_message()

    run(make())
    thread = threading.Thread(target=lambda: run(send()))
    thread.start()
    assert run(receive()) == pattern(7, 1_000_000)
    thread.join()


# ---- Keys, tickets, settings, paths
