"""What the tests of the transport for asyncio share."""

import asyncio
import random

import anabranch as ab

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
