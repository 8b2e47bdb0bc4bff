"""The transport for asyncio: delivery, cancelled tasks, limits, and interoperation with the command line and Rust."""

import asyncio
import gc
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import anabranch as ab
from conftest import built

net = ab.net

# The limit of each wait in seconds: longer, and something hangs.
SOON = 20


def run(what):
    """Runs a coroutine, and asserts that no operation waits at the end."""

    async def bounded():
        try:
            return await asyncio.wait_for(what, SOON)
        finally:
            bell = net._bells.get(asyncio.get_running_loop())
            if bell is not None:
                await asyncio.sleep(0)
                others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
                assert others or bell.waiting == 0

    return asyncio.run(bounded())


async def connected(*, server=None, client=None):
    """A server, and both ends of a connection to it: the client's, and its own."""
    listening = await net.listen("127.0.0.1:0", **(server or {}))
    there, here = await asyncio.gather(net.connect(listening.ticket, **(client or {})), listening.accept())
    return listening, there, here


def pattern(seed, size):
    return random.Random(seed).randbytes(size)


async def echo(server):
    """The server of the first example."""

    async def serve(connection):
        async with connection:
            async for stream in connection:
                data = await stream.read()
                await stream.write(data)
                await stream.finish()

    tasks = set()
    async for connection in server:
        tasks.add(asyncio.create_task(serve(connection)))
    await asyncio.gather(*tasks)


# ---- Streams


def test_what_is_said_comes_back():
    async def main():
        server = await net.listen("127.0.0.1:0", key=net.Key.generate())
        serving = asyncio.create_task(echo(server))
        async with await net.connect(str(server.ticket)) as connection:
            assert connection.peer == server.key == server.ticket.key
            stream = await connection.open()
            await stream.write(b"hello")
            await stream.finish()
            assert await stream.read() == b"hello"
            assert await stream.stopped() is None
            stats = connection.stats()
            # A number of 4 bytes begins each stream, so this is the least.
            assert stats["bytes_acknowledged"] >= 9 and stats["bytes_received"] >= 9
            assert sum(stats[name] for name in stats if name.startswith("limited_by_")) > 0
        server.close()
        await serving

    run(main())


def test_over_ipv6_too():
    async def main():
        try:
            server = await net.listen("[::1]:0")
        except net.BindError:
            pytest.skip("this computer has no IPv6")
        async with server:
            there, here = await asyncio.gather(net.connect(server.ticket), server.accept())
            assert there.paths()[0]["remote"].startswith("[::1]:")
            await there.send_message(b"six")
            assert await here.accept_message() == b"six"

    run(main())


def test_a_read_gives_what_is_there_and_no_more():
    async def main():
        _, there, here = await connected()
        out = await there.open_stream()
        await out.write(bytearray(b"0123456789"))
        stream = await here.accept_stream()
        assert await stream.read_exactly(3) == b"012"
        assert await stream.read(4) == b"3456"
        await out.write(memoryview(b"abcdef")[1:5])
        await out.finish()
        assert await stream.read(0) == b""
        assert await stream.read() == b"789bcde"
        assert await stream.read() == b"" and await stream.read(5) == b""
        with pytest.raises(net.IncompleteReadError, match="ended too early"):
            await stream.read_exactly(1)
        for wrong in ["text", 5]:
            with pytest.raises(TypeError):
                await out.write(wrong)

    run(main())


def test_an_iteration_ends_with_the_stream():
    async def main():
        _, there, here = await connected()
        sent = pattern(1, 3_000_000)

        async def send():
            async with await there.open_stream() as out:
                await out.write(sent)

        sending = asyncio.create_task(send())
        async with await here.accept_stream() as stream:
            got = b"".join([chunk async for chunk in stream])
        await sending
        assert got == sent

    run(main())


def test_messages_are_whole_and_in_the_order_of_their_beginnings():
    async def main():
        _, there, here = await connected()
        for size in [0, 1, 100_000]:
            await there.send_message(pattern(size, size))
        for size in [0, 1, 100_000]:
            assert await here.accept_message() == pattern(size, size)
        await there.send_message(bytes(101))
        with pytest.raises(net.TooLongError, match="longer than expected"):
            await here.accept_message(limit=100)
        await there.send_message(bytes(100))
        assert await here.accept_message(limit=100) == bytes(100)

    run(main())


def test_codes_reach_the_other_end():
    async def main():
        _, there, here = await connected()
        out = await there.open_stream()
        await out.write(b"half of it")
        stream = await here.accept_stream()
        out.reset(7)
        with pytest.raises(net.ResetError, match="code 7") as reset:
            while await stream.read(100):
                pass
        assert reset.value.code == 7
        out = await there.open_stream()
        await out.write(b"spam")
        (await here.accept_stream()).stop(9)
        assert await out.stopped() == 9
        with pytest.raises(net.StoppedError, match="refused") as stopped:
            await out.write(b"more")
        assert stopped.value.code == 9
        with pytest.raises(OverflowError):
            out.reset(1 << 16)

    run(main())


def test_a_block_that_fails_resets_its_stream():
    async def main():
        _, there, here = await connected()
        with pytest.raises(ZeroDivisionError):
            async with await there.open_stream() as out:
                await out.write(b"incomplete")
                stream = await here.accept_stream()
                1 / 0
        with pytest.raises(net.ResetError):
            await stream.read()

    run(main())


def test_a_block_that_fails_aborts_its_connection():
    async def main():
        _, there, here = await connected()
        with pytest.raises(ZeroDivisionError):
            async with there:
                1 / 0
        with pytest.raises(net.LostError, match="reset the connection"):
            await here.accept_stream()

    run(main())


def test_a_stream_of_a_lower_level_goes_first():
    async def main():
        # So much of the first stream waits that the second overtakes it, however slow this computer is.
        _, there, here = await connected(client={"send_buffer": 1 << 25, "send_buffer_max": 1 << 25})
        late, soon = await there.open_stream(), await there.open_stream()
        late.set_priority(7)
        soon.set_priority(0, weight=2)
        with pytest.raises(ValueError, match="0 to 7"):
            soon.set_priority(8)
        for out, size in [(late, 30_000_000), (soon, 500_000)]:
            await out.write(bytes(size))
            await out.finish()
        ends = []

        async def drain(stream):
            ends.append(len(await stream.read()))

        await asyncio.gather(*[drain(await here.accept_stream()) for _ in range(2)])
        assert ends == [500_000, 30_000_000]

    run(main())


def test_pairs_and_single_streams_do_not_mix():
    async def main():
        _, there, here = await connected()
        await there.open()
        with pytest.raises(RuntimeError, match="come in pairs"):
            await there.open_stream()
        await here.open_stream()
        with pytest.raises(RuntimeError, match="do not come in pairs"):
            await here.accept()

    run(main())


# ---- Cancelled tasks


def test_a_cancelled_read_has_taken_nothing():
    """All kinds of reads are cancelled at any time; the other reads together get all data."""

    async def main():
        _, there, here = await connected()
        sent, dice = pattern(2, 400_000), random.Random(3)

        async def send():
            async with await there.open_stream() as out:
                at = 0
                while at < len(sent):
                    size = dice.randrange(1, 2000)
                    await out.write(sent[at : at + size])
                    at += size
                    await asyncio.sleep(dice.choice([0, 0, 0.0005]))

        sending = asyncio.create_task(send())
        stream = await here.accept_stream()
        got, cancelled, timed_out = bytearray(), 0, 0
        while len(got) < len(sent):
            left = len(sent) - len(got)
            kind = dice.randrange(3)
            if kind > 0 and dice.random() < 0.3:
                # It needs the end, which is far.
                reading = asyncio.ensure_future(stream.read())
            elif dice.random() < 0.5:
                reading = asyncio.ensure_future(stream.read(dice.randrange(1, 5000)))
            else:
                reading = asyncio.ensure_future(stream.read_exactly(min(left, 3000)))
            try:
                if kind == 0:
                    got += await reading
                elif kind == 1:
                    await asyncio.sleep(dice.choice([0, 0, 0.0003]))
                    cancelled += reading.cancel()
                    got += await reading
                else:
                    got += await asyncio.wait_for(reading, dice.choice([0.00001, 0.0005]))
            except asyncio.CancelledError:
                pass
            except asyncio.TimeoutError:
                timed_out += 1
        await sending
        assert got == sent
        assert cancelled > 10 and timed_out > 10, (cancelled, timed_out)

    run(main())


def test_a_cancelled_write_tells_what_it_has_written():
    async def main():
        _, there, here = await connected()
        sent, dice = pattern(4, 20_000_000), random.Random(5)
        out = await there.open_stream()

        async def receive():
            stream, digest = await here.accept_stream(), hashlib.sha256()
            async for chunk in stream:
                digest.update(chunk)
                await asyncio.sleep(0)
            return digest.digest()

        receiving, interrupted = asyncio.create_task(receive()), 0
        while out.written < len(sent):
            try:
                await asyncio.wait_for(out.write(sent[out.written :]), dice.choice([0.001, 0.005]))
            except asyncio.TimeoutError:
                interrupted += 1
        await out.finish()
        assert await receiving == hashlib.sha256(sent).digest()
        assert interrupted > 3, interrupted

    run(main())


def test_a_cancelled_accept_has_taken_nothing():
    async def main():
        server = await net.listen("127.0.0.1:0")
        accepted = []

        async def accept(what, into):
            for _ in range(1000):
                try:
                    into.append(await asyncio.wait_for(what(), 0.0005))
                except asyncio.TimeoutError:
                    pass
                if len(into) == 5:
                    return

        accepting = asyncio.create_task(accept(server.accept, accepted))
        clients = [await net.connect(server.ticket) for _ in range(5)]
        await accepting
        assert len(accepted) == 5
        numbers = []
        messages = asyncio.create_task(accept(lambda: accepted[0].accept_message(), numbers))
        # Whose connection was accepted first is known by what arrives.
        for client in clients:
            for number in range(5):
                await client.send_message(b"%d" % number * 50_000)
        await messages
        assert numbers == [b"%d" % number * 50_000 for number in range(5)]
        pairs = []
        here = accepted[1]
        there = await net.connect(server.ticket)
        here = await server.accept()
        opening = [await there.open() for _ in range(5)]
        for number, stream in enumerate(opening):
            await stream.write(b"%d" % number)
            await stream.finish()
        await accept(here.accept, pairs)
        assert sorted([await pair.read() for pair in pairs]) == [b"0", b"1", b"2", b"3", b"4"]

    run(main())


def test_a_message_whose_reader_was_cancelled_comes_whole():
    async def main():
        _, there, here = await connected()
        out = await there.open_stream()
        await out.write(b"half and ")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(here.accept_message(), 0.1)
        await there.send_message(b"another")
        await out.write(b"half")
        await out.finish()
        assert await here.accept_message() == b"half and half"
        assert await here.accept_message() == b"another"

    run(main())


def test_a_message_whose_writer_was_cancelled_is_never_taken_for_whole():
    async def main():
        _, there, here = await connected(server={"receive_buffer": 1 << 20, "receive_buffer_max": 1 << 20})
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(there.send_message(bytes(30_000_000)), 0.2)
        with pytest.raises(net.ResetError):
            await here.accept_message()

    run(main())


def test_what_was_cancelled_is_kept_nowhere():
    async def main():
        server, there, here = await connected()
        bell = net._bells[asyncio.get_running_loop()]
        out = await there.open_stream()
        await out.write(b"x")
        stream = await here.accept_stream()
        before = bell.wakers
        for _ in range(100):
            for wait in [here.accept_stream, there.closed, server.accept, server.wait_idle, out.stopped, stream.read]:
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(wait(), 0.0001)
        assert bell.wakers <= before and bell.waiting == 0

    run(main())


def test_a_cancelled_connect_is_over():
    async def main():
        # A socket that never answers.
        silent = asyncio.DatagramProtocol()
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: silent, ("127.0.0.1", 0))
        ticket = net.Ticket.of(net.Key.generate().public, ["127.0.0.1:%d" % transport.get_extra_info("sockname")[1]])
        begin = time.perf_counter()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(net.connect(ticket), 0.05)
        with pytest.raises(net.ConnectError, match="nobody with the ticket's key answers at 127.0.0.1"):
            await net.connect(ticket, timeout=0.1)
        assert time.perf_counter() - begin < 2
        transport.close()

    run(main())


# ---- Limits, and who waits for whom


def test_a_slow_reader_stops_the_peer():
    async def main():
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

    async def stream_until(stream, size):
        while size > 0:
            chunk = await stream.read(min(size, 100_000))
            size -= len(chunk)
            yield chunk

    run(main())


def test_a_busy_stream_leaves_turns_to_others():
    """All data is there, so that no read waits; other tasks have a turn after 16 reads nevertheless."""

    async def main():
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

    run(main())


def test_other_threads_run_while_a_task_waits():
    async def main():
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

    run(main())


def test_the_network_goes_on_while_python_computes():
    """The loop of this thread is blocked for a second; the peer's keep-alive probes are still answered."""

    async def main():
        _, there, here = await connected(client={"idle_timeout": 0.6, "keep_alive": 0.2}, server={"idle_timeout": 0.6})
        time.sleep(1.5)
        await there.send_message(b"still here")
        assert await here.accept_message() == b"still here"

    run(main())


def test_a_hundred_connections_on_one_loop():
    async def main():
        server = await net.listen("127.0.0.1:0")
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

    run(main())


def test_one_task_reads_a_stream_at_a_time():
    async def main():
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

    run(main())


# ---- The end


def test_close_waits_for_the_delivery():
    async def main():
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

    run(main())


def test_what_is_closed_is_not_used():
    async def main():
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

    run(main())


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


def test_a_silent_peer_is_given_up():
    async def main():
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

    run(main())


def test_an_abandoned_handle_leaks_nothing():
    def descriptors():
        return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    async def main():
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

    run(main())


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


def test_keys_are_files_that_only_their_owner_reads(tmp_path):
    key = net.Key.generate()
    key.write_new(tmp_path / "key")
    assert net.Key.read(tmp_path / "key").public == key.public
    assert len(str(key.public)) == 58 and len(bytes(key.public)) == 32
    assert net.PublicKey(str(key.public)) == key.public and hash(net.PublicKey(str(key.public))) == hash(key.public)
    assert str(key.public) not in repr(key)
    with pytest.raises(net.InvalidKeyError, match="nothing is written over a key"):
        key.write_new(tmp_path / "key")
    if os.name == "posix":
        os.chmod(tmp_path / "key", 0o644)
        with pytest.raises(net.InvalidKeyError, match="chmod 600"):
            net.Key.read(tmp_path / "key")
    with pytest.raises(net.InvalidKeyError, match="a public key has 58 letters"):
        net.PublicKey("aaaa")


def test_tickets_are_texts():
    key = net.Key.generate().public
    ticket = net.Ticket.of(key, ["127.0.0.1:5", "[::1]:6"])
    assert ticket.addresses == ["127.0.0.1:5", "[::1]:6"] and ticket.key == key
    assert net.Ticket(str(ticket)) == ticket and hash(net.Ticket(str(ticket))) == hash(ticket)
    with pytest.raises(net.TicketError, match="begins with `ab1`"):
        net.Ticket("hello")
    letters = str(ticket)
    with pytest.raises(net.TicketError, match="checksum"):
        net.Ticket(letters[:20] + ("a" if letters[20] != "a" else "b") + letters[21:])
    with pytest.raises(net.TicketError, match="no address"):
        net.Ticket.of(key, [])
    with pytest.raises(net.BindError, match="`localhost:1` is no address"):
        net.Ticket.of(key, ["localhost:1"])


def test_a_server_admits_the_keys_it_is_told():
    async def main():
        friend = net.Key.generate()
        server = await net.listen("127.0.0.1:0", keys=[friend.public, str(net.Key.generate().public)])
        there, here = await asyncio.gather(net.connect(server.ticket, key=friend), server.accept())
        assert here.peer == friend.public
        with pytest.raises(net.ConnectError):
            await net.connect(server.ticket, timeout=0.5)

    run(main())


def test_settings_are_those_of_the_library():
    async def main():
        server = await net.listen("127.0.0.1:0", cc="cubic", streams=16, qlog=None, keep_alive=None)
        client = await net.listen("127.0.0.1:0", cc={"name": "fast", "alpha": 30}, timeout=1)
        there, here = await asyncio.gather(client.connect(server.ticket), server.accept())
        await there.send_message(bytes(200_000))
        await here.accept_message()
        # The gauges are those of the laws.
        assert "rtt_base_s" in there.paths()[0]["gauges"]
        for wrong, says in [
            ({"cc": "cubik"}, "cubic"),
            ({"cc": {"name": "fast", "alfa": 1}}, "alpha"),
            ({"cc": {"alpha": 1}}, "`name`"),
            ({"timeout": 0}, "above 0"),
            ({"timeout": float("nan")}, "above 0"),
            ({"idle_timeout": 1e300}, "at most"),
            ({"streams": 1 << 16}, "`streams`"),
        ]:
            with pytest.raises(ValueError, match=says):
                await net.listen("127.0.0.1:0", **wrong)
        for wrong, says in [({"strems": 1}, "streams"), ({"streams": "many"}, "`streams`"), ({"cc": ab.Controller}, "`cc`")]:
            with pytest.raises(TypeError, match=says):
                await net.listen("127.0.0.1:0", **wrong)
        with pytest.raises(net.BindError, match="settings cannot work"):
            await net.listen("127.0.0.1:0", paths=99)
        with pytest.raises(net.BindError, match="no UDP socket at"):
            await net.listen(server.addresses[0])

    run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have 127.0.0.1 alone")
def test_a_connection_has_several_paths():
    async def main():
        server = await net.listen("127.0.0.1:0", "127.0.0.2:0")
        client = await net.listen("127.0.0.1:0", "127.0.0.3:0")
        there, here = await asyncio.gather(client.connect(server.ticket), server.accept())
        path = await there.add_path("127.0.0.3", server.addresses[1])
        assert [it["id"] for it in there.paths()] == [0, path]
        second = there.paths()[1]
        assert second["local"].startswith("127.0.0.3:") and second["remote"] == server.addresses[1]
        assert second["state"] == "live" and second["status"] == "active"
        there.set_path_status(path, "standby")
        assert there.paths()[1]["status"] == "standby"
        # Both at once: on a slow machine two megabytes are more than the credit before anybody reads.
        _, message = await asyncio.gather(there.send_message(pattern(8, 2_000_000)), here.accept_message())
        assert message == pattern(8, 2_000_000)
        there.remove_path(0)
        with pytest.raises(net.PathError, match="no path 7"):
            there.remove_path(7)
        with pytest.raises(net.PathError, match="only one"):
            there.remove_path(path)
        with pytest.raises(net.PathError, match="no socket of the endpoint sends from 127.0.0.9"):
            await there.add_path("127.0.0.9", server.addresses[0])
        with pytest.raises(net.PathError, match="needs a ticket"):
            await here.add_paths()
        await there.send_message(b"on the other")
        assert await here.accept_message() == b"on the other"

    run(main())


# ---- The command line, and programs in Rust


@pytest.fixture(scope="session")
def echo_in_rust():
    """The library's example, which numbers its requests by hand."""
    return built(["-p", "anabranch", "--example", "echo"], os.path.join("examples", "echo"))


def test_the_same_keys_as_the_command_line(command, tmp_path):
    made = subprocess.run([command, "key", "new", str(tmp_path / "a")], capture_output=True, text=True, check=True)
    assert str(net.Key.read(tmp_path / "a").public) == made.stdout.strip()
    key = net.Key.generate()
    key.write_new(tmp_path / "b")
    shown = subprocess.run([command, "key", "show", str(tmp_path / "b")], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == str(key.public)


def test_python_asks_a_server_in_rust(echo_in_rust):
    program = subprocess.Popen([echo_in_rust], stdout=subprocess.PIPE, text=True)
    try:
        ticket = net.Ticket(program.stdout.readline().strip())

        async def main():
            async with await net.connect(ticket) as connection:
                streams = [await connection.open() for _ in range(50)]
                for number, stream in enumerate(streams):
                    await stream.write(pattern(number, number * 1000))
                    await stream.finish()
                for number, stream in reversed(list(enumerate(streams))):
                    assert await stream.read() == pattern(number, number * 1000)

        run(main())
    finally:
        program.kill()
        program.wait()


def test_a_client_in_rust_asks_python(echo_in_rust):
    async def main():
        async with await net.listen("127.0.0.1:0") as server:
            serving = asyncio.create_task(echo(server))
            asking = await asyncio.create_subprocess_exec(
                echo_in_rust, str(server.ticket), "so", "many", "words", stdout=asyncio.subprocess.PIPE
            )
            answer, _ = await asking.communicate()
            assert asking.returncode == 0 and answer.decode().split() == ["so", "many", "words"]
        await serving

    run(main())


def test_python_measures_with_bench_serve(command):
    """The request of `bench` is written by hand: 8 letters, 0 for upwards, a stream, milliseconds."""
    program = subprocess.Popen([command, "bench", "serve", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        # It listens at all addresses, and is reached at loopback.
        told = net.Ticket(json.loads(program.stdout.readline())["ticket"])
        port = told.addresses[0].rsplit(":", 1)[1]
        ticket = net.Ticket.of(told.key, [f"127.0.0.1:{port}"])

        async def main():
            connection = await net.connect(ticket)
            await connection.send_message(b"ab-bench\x00\x01" + (200).to_bytes(4, "little"))
            out = await connection.open_stream()
            for _ in range(100):
                await out.write(bytes(65_536))
            await out.finish()
            await connection.close()
            await connection.closed()

            connection = await net.connect(ticket)
            await connection.send_message(b"ab-bench\x01\x02" + (200).to_bytes(4, "little"))
            streams = [await connection.accept_stream(), await connection.accept_stream()]
            sizes = await asyncio.gather(*(drain(stream) for stream in streams))
            assert all(size > 256 << 10 for size in sizes), sizes
            await connection.close()

        async def drain(stream):
            return sum([len(chunk) async for chunk in stream])

        run(main())
    finally:
        program.kill()
        program.wait()


def test_bench_measures_with_python(command):
    """The command line is the client, and discards what Python sends."""

    async def main():
        async with await net.listen("127.0.0.1:0") as server:
            bench = await asyncio.create_subprocess_exec(
                command, "bench", str(server.ticket), "--reverse", "--time", "1", "--json",
                stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            connection = await server.accept()
            request = await connection.accept_message()
            assert request == b"ab-bench\x01\x01" + (1000).to_bytes(4, "little")
            async with await connection.open_stream() as out:
                for _ in range(200):
                    await out.write(bytes(65_536))
                # It looks at its counters every 10 ms.
                await asyncio.sleep(0.5)
            await connection.close()
            printed, _ = await bench.communicate()
            assert bench.returncode == 0
            assert json.loads(printed)["bytes_received"] >= 200 * 65_536

    run(main())
