"""How fast is the transport from Python? One stream with writes of 64 KiB, and the time of a small request and its answer.

    python network_speed.py [SECONDS]

The other end is another process, at loopback. `anabranch bench` measures the same stream without Python.
"""

import asyncio
import statistics
import subprocess
import sys
import time

import anabranch as ab

SIZE = 1 << 16


async def serve():
    """Discards the first stream and answers the second, byte by byte."""
    async with await ab.net.listen("127.0.0.1:0") as server:
        print(server.ticket, flush=True)
        connection = await server.accept()
    stream = await connection.accept_stream()
    while await stream.read(SIZE):
        pass
    questions, answers = await connection.accept_stream(), await connection.open_stream()
    async for question in questions:
        await answers.write(question)
    await answers.finish()
    await connection.close()


async def measure(ticket, seconds):
    async with await ab.net.connect(ticket) as connection:
        stream, block, count = await connection.open_stream(), bytes(SIZE), 0
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds:
            await stream.write(block)
            count += 1
        await stream.finish()
        await stream.stopped()
        print(f"{count * SIZE * 8 / (time.perf_counter() - begin) / 1e9:.2f} Gbit/s")

        questions, answers, times = await connection.open_stream(), None, []
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds:
            asked = time.perf_counter()
            await questions.write(b"?")
            answers = answers or await connection.accept_stream()
            await answers.read_exactly(1)
            times.append(time.perf_counter() - asked)
        await questions.finish()
        times.sort()
        tail = times[len(times) * 99 // 100]
        print(f"an answer after {statistics.median(times) * 1e6:.0f} us, 99 % after at most {tail * 1e6:.0f} us")


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
    else:
        # Without an argument this is only a short test.
        seconds = float(sys.argv[1]) if len(sys.argv) == 2 and sys.argv[1].replace(".", "").isdigit() else 0.2
        other = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
        try:
            asyncio.run(measure(other.stdout.readline().strip(), seconds))
        finally:
            other.kill()
            other.wait()
