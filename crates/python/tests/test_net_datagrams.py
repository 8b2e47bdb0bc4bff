"""Unreliable datagrams of the transport for asyncio."""

import asyncio

import pytest

import anabranch as ab
from network import connected, pattern

net = ab.net


async def test_datagrams_arrive_in_both_directions():
    _, there, here = await connected()
    for data in [b"ping", bytearray(b"array"), memoryview(b"--view--")[2:6], b""]:
        there.send_datagram(data)
        assert await here.read_datagram() == bytes(data)
    # A task that waits is woken, and streams go on beside.
    waiting = asyncio.create_task(there.read_datagram())
    await asyncio.sleep(0.05)
    here.send_datagram(b"pong", within=5)
    assert await waiting == b"pong"
    await there.send_message(b"on a stream")
    assert await here.accept_message() == b"on a stream"
    stats = there.stats()
    assert stats["datagrams_sent"] == 4 and stats["datagrams_received"] == 1
    for wrong in ["text", 5]:
        with pytest.raises(TypeError):
            there.send_datagram(wrong)
    for wrong in [0, -1, float("nan")]:
        with pytest.raises(ValueError, match="`within`"):
            there.send_datagram(b"late", within=wrong)


async def test_urgent_datagrams_go_first():
    """The window and the queue are full of others."""
    _, there, here = await connected()
    for number in range(200):
        there.send_datagram(number.to_bytes(2, "big") * 500)
    there.send_datagram(b"urgent", urgent=True)
    there.send_datagram(b"in time", urgent=True, within=5)
    read = [await here.read_datagram() for _ in range(202)]
    assert read.index(b"urgent") < 190 and read.index(b"in time") < 200


async def test_size_limit_is_told_and_grows():
    """1200 bytes of UDP payload at the beginning, and a packet of 1500 bytes at last: 1416 (docs/wire.md 2.8)."""
    _, there, here = await connected()
    with pytest.raises(net.DatagramError, match="a datagram of 9000 bytes is too large") as refused:
        there.send_datagram(bytes(9000))
    assert 1144 <= refused.value.max_size <= 1416
    wanted = pattern(1, 1416)
    while True:
        try:
            there.send_datagram(wanted)
            break
        except net.DatagramError as error:
            assert error.max_size < 1416
            await asyncio.sleep(0.005)
    assert there.max_datagram_size == 1416
    assert await here.read_datagram() == wanted


async def test_ends_without_datagrams_say_so():
    _, there, here = await connected(server={"datagram_receive_buffer": 0})
    with pytest.raises(net.DatagramError, match="other end takes no datagrams") as refused:
        there.send_datagram(b"x")
    assert refused.value.max_size == 0
    with pytest.raises(net.DatagramError, match="switched off at this end"):
        here.max_datagram_size


async def test_cancelled_read_takes_no_datagram():
    _, there, here = await connected()
    for number in range(300):
        reading = asyncio.create_task(here.read_datagram())
        await asyncio.sleep(0)
        there.send_datagram(number.to_bytes(4, "big"))
        if number % 2:
            await asyncio.sleep(0.002 * (number % 5))
        reading.cancel()
        try:
            got = await reading
        except asyncio.CancelledError:
            got = await here.read_datagram()
        assert int.from_bytes(got, "big") == number


async def test_several_readers_get_each_datagram_once():
    _, there, here = await connected()
    readers = [asyncio.create_task(here.read_datagram()) for _ in range(20)]
    await asyncio.sleep(0.01)
    for number in range(20):
        there.send_datagram(bytes([number]))
    assert sorted(await asyncio.gather(*readers)) == [bytes([number]) for number in range(20)]


async def test_closed_and_lost_connections_end_a_read():
    _, there, here = await connected()
    there.send_datagram(b"last")
    reading = [asyncio.create_task(here.read_datagram()) for _ in range(2)]
    await there.close()
    ended = await asyncio.gather(*reading, return_exceptions=True)
    got = [each for each in ended if not isinstance(each, net.ClosedError)]
    assert got == [b"last"], ended
    with pytest.raises(net.ClosedError, match="closed to new datagrams"):
        there.send_datagram(b"too late")
    _, there, here = await connected()
    reading = asyncio.create_task(here.read_datagram())
    await asyncio.sleep(0.01)
    there.abort()
    with pytest.raises(net.LostError, match="reset the connection") as lost:
        await reading
    assert lost.value.reason == "reset"
    for refused in [lambda: there.send_datagram(b"x"), lambda: there.max_datagram_size]:
        with pytest.raises(net.LostError):
            refused()


async def test_late_and_excess_datagrams_are_dropped_and_counted():
    """At 100 kbit/s a datagram of 1,000 bytes takes more than 80 ms."""
    _, there, here = await connected(client={"rate_max": "100kbit/s", "datagram_send_buffer": 20_000})
    for _ in range(10):
        there.send_datagram(bytes(1000), within=0.2)
    await asyncio.sleep(0.5)
    stats = there.stats()
    assert stats["datagrams_expired"] >= 5 and stats["datagrams_sent"] + stats["datagrams_expired"] == 10, stats
    # With 128 bytes each has beside its own, 17 fit.
    for _ in range(60):
        there.send_datagram(bytes(1000))
    assert there.stats()["datagrams_dropped_unsent"] in range(41, 44), there.stats()
    there.set_rate_max(None)
    there.send_datagram(b"end")
    while await here.read_datagram() != b"end":
        pass
    for wrong, says in [("9kbit/s", "the least is 10kbit/s"), ("fast", "`rate`")]:
        with pytest.raises(ValueError, match=says):
            there.set_rate_max(wrong)


async def test_unread_datagrams_take_no_more_than_their_buffer():
    _, there, here = await connected(server={"datagram_receive_buffer": 10_000})
    for number in range(200):
        there.send_datagram(number.to_bytes(2, "big") + bytes(998))
        await asyncio.sleep(0)
    stats = there.stats()
    while stats["datagrams_delivered"] + stats["datagrams_lost"] + stats["datagrams_dropped_unsent"] < 200:
        await asyncio.sleep(0.01)
        stats = there.stats()
    kept = here.stats()["datagrams_received"] - here.stats()["datagrams_dropped_unread"]
    assert kept <= 10_000 // 1128, here.stats()
    last = [await here.read_datagram() for _ in range(kept)][-1]
    assert int.from_bytes(last[:2], "big") == 199
