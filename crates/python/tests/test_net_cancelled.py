"""Cancelled tasks of the transport for asyncio lose no byte and leave nothing behind."""

import asyncio
import hashlib
import random
import time

import pytest

import anabranch as ab
from network import connected, pattern

net = ab.net


async def test_a_cancelled_read_has_taken_nothing():
    """All kinds of reads are cancelled at any time; the other reads together get all data."""
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


async def test_a_cancelled_write_tells_what_it_has_written():
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
    assert interrupted, "nothing was cancelled"


async def test_a_cancelled_accept_has_taken_nothing():
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


async def test_a_message_whose_reader_was_cancelled_comes_whole():
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


async def test_message_of_cancelled_writer_is_reset():
    _, there, here = await connected(server={"receive_buffer": 1 << 20, "receive_buffer_max": 1 << 20})
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(there.send_message(bytes(30_000_000)), 0.2)
    with pytest.raises(net.ResetError):
        await here.accept_message()


async def test_cancelled_waits_leave_no_wakers():
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


async def test_a_cancelled_connect_is_over():
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


# ---- Limits, and who waits for whom
