"""load.py — what the server takes: requests a second, how long they take, broken ones, and that it comes back after a kill.

  load.py SERVER PROGRAM.tnp [--seconds S] [--clients N] [--broken N] [--restarts N]

It starts SERVER itself, on a free port of 127.0.0.1. Every input has one row, of zeros. The exit status is 1 where something hangs,
or is answered otherwise than it should be.
"""

import argparse
import asyncio
import json
import random
import re
import signal
import statistics
import subprocess
import sys
import time

PATIENCE = 120  # seconds: what takes longer hangs


class Server:
    def __init__(self, options, port=0):
        self.process = subprocess.Popen([options.server, options.program, "--port", str(port), "--threads", str(options.threads)],
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)$", self.process.stdout.readline())[1])

    def stop(self, how):
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)


async def exchange(reader, writer, request):
    writer.write(request)
    status = int((await reader.readline()).split()[1])
    length, closes = 0, False
    while (line := (await reader.readline()).strip()):
        name, _, value = line.decode().partition(":")
        length = int(value) if name.lower() == "content-length" else length
        closes = closes or (name.lower() == "connection" and value.strip() == "close")
    return status, json.loads(await reader.readexactly(length)), closes


def http(method, path, body=b""):
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def ask(port, request):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await asyncio.wait_for(exchange(reader, writer, request), PATIENCE)
    finally:
        writer.close()


def make_request(metadata):
    inputs = []
    for port in metadata["inputs"]:
        shape = [1 if size == -1 else size for size in port["shape"]]
        count = 1
        for size in shape:
            count *= size
        inputs.append({"name": port["name"], "datatype": port["datatype"], "shape": shape,
                       "data": [False if port["datatype"] == "BOOL" else 0] * count})
    return http("POST", f"/v2/models/{metadata['name']}/infer", json.dumps({"id": "a", "inputs": inputs}).encode())


async def client(port, request, end, times):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < end:
        begin = time.perf_counter()
        status, answer, _ = await asyncio.wait_for(exchange(reader, writer, request), PATIENCE)
        assert status == 200, answer
        times.append(1e3 * (time.perf_counter() - begin))
    writer.close()


async def measure(port, request, clients, seconds):
    times, begin = [], time.perf_counter()
    await asyncio.gather(*(client(port, request, begin + seconds, times) for _ in range(clients)))
    times.sort()
    spent = time.perf_counter() - begin
    print(f"{clients:4} clients: {len(times) / spent:8.0f} requests a second, p50 {statistics.median(times):.2f} ms, "
          f"p99 {times[int(0.99 * (len(times) - 1))]:.2f} ms", flush=True)


def broken_requests(good, count):
    """Each with the statuses that will do; none: that the server closes the connection, or waits for the rest, will do."""
    random.seed(0)
    head, _, body = good.partition(b"\r\n\r\n")
    request = json.loads(body)
    path = head.split()[1].decode()
    first = request["inputs"][0]

    def infer(**changes):
        return http("POST", path, json.dumps({"inputs": [{**first, **changes}, *request["inputs"][1:]]}).encode())

    kinds = [
        (lambda: http("POST", path, body[:random.randrange(len(body))]), {400}),
        (lambda: http("POST", path, bytes(random.randrange(256) for _ in range(60))), {400}),
        (lambda: http("POST", path, b"[" * 100000), {400}),
        (lambda: http("POST", path, b'{"inputs":' + b"[" * 10000 + b"]" * 10000 + b"}"), {400}),
        (lambda: infer(datatype="NONE"), {400}), (lambda: infer(shape=[-1]), {400}), (lambda: infer(shape=[2 ** 62] * 2), {400}),
        (lambda: infer(data=[]), {400}), (lambda: infer(data=["a"]), {400}), (lambda: infer(data=[first["data"]] * 2), {400}),
        (lambda: infer(name="none"), {400}), (lambda: http("POST", path, b'{"inputs": []}'), {400}),
        (lambda: http("GET", path), {405}), (lambda: http("POST", "/v2/models/none/infer", body), {404}),
        (lambda: head.replace(b"Content-Length", b"X") + b"\r\n\r\n", {411}),
        (lambda: f"POST {path} HTTP/1.1\r\nContent-Length: {10 ** 12}\r\n\r\n".encode(), {413}),
        (lambda: f"POST {path} HTTP/1.1\r\nContent-Length: -1\r\n\r\n".encode(), {400}),
        (lambda: b"GET / HTTP/1.1\r\nX: " + b"x" * 20000 + b"\r\n\r\n", {431}),
        (lambda: bytes(random.randrange(1, 256) for _ in range(40)) + b"\r\n\r\n", {400, 404, 405}),
        (lambda: good[:random.randrange(1, len(good))], None),
    ]
    return [(make(), statuses) for make, statuses in (kinds[i % len(kinds)] for i in range(count))]


async def expect_apart(port, good):
    """Requests that run together and are at fault: the others are answered."""
    head, _, body = good.partition(b"\r\n\r\n")
    path, request = head.split()[1].decode(), json.loads(body)
    broken = [http("POST", path, json.dumps({**request, "outputs": [{"name": 5}]}).encode())]
    if len(request["inputs"]) > 1:  # of more rows than the others
        first = request["inputs"][0]
        larger = {**first, "shape": [2, *first["shape"][1:]], "data": first["data"] * 2}
        broken.append(http("POST", path, json.dumps({**request, "inputs": [larger, *request["inputs"][1:]]}).encode()))
    together = [good, *broken] * 20
    answers = await asyncio.gather(*(ask(port, each) for each in together))
    for each, (status, answer, _) in zip(together, answers):
        assert status == (200 if each is good else 400), (status, answer)
    print(f"{len(together)} requests at once: {20 * len(broken)} at fault are refused, the others answered", flush=True)


async def send_broken(port, good, count):
    answered = 0
    for request, statuses in broken_requests(good, count):
        if statuses is None:  # who leaves in the middle
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            writer.transport.abort()
            continue
        status, answer, _ = await ask(port, request)
        assert status in statuses and answer["error"], (status, answer, request[:300])
        answered += 1
    status, _, _ = await ask(port, good)
    assert status == 200
    print(f"{count} broken requests: {answered} answered with an error, the others given up; the next one is served", flush=True)


async def survive(options, server, good):
    """Killed amid requests: clients are told at once, and find the next server at the same port."""
    end = time.perf_counter() + 0.5
    clients = [asyncio.create_task(client(server.port, good, end, [])) for _ in range(8)]
    await asyncio.sleep(0.2)
    server.stop(signal.SIGKILL)
    for result in await asyncio.wait_for(asyncio.gather(*clients, return_exceptions=True), PATIENCE):
        assert result is None or isinstance(result, (OSError, IndexError, EOFError)), result
    begin = time.perf_counter()
    server = Server(options, server.port)
    status, _, _ = await ask(server.port, good)
    assert status == 200
    return server, 1e3 * (time.perf_counter() - begin)


async def run(options):
    server = Server(options)
    try:
        for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/model/ready"):
            status, answer, _ = await ask(server.port, http("GET", path))
            assert status == 200, answer
        _, metadata, _ = await ask(server.port, http("GET", "/v2/models/model"))
        good = make_request(metadata)
        status, answer, _ = await ask(server.port, good)
        assert status == 200 and answer["id"] == "a" and len(answer["outputs"]) == len(metadata["outputs"]), answer
        for clients in (1, options.clients):
            await measure(server.port, good, clients, options.seconds)
        await expect_apart(server.port, good)
        await send_broken(server.port, good, options.broken)
        for _ in range(options.restarts):
            server, milliseconds = await survive(options, server, good)
            print(f"killed and started again: served after {milliseconds:.0f} ms", flush=True)
        assert server.stop(signal.SIGTERM) == 0
        print("ended by SIGTERM")
    finally:
        server.process.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server")
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--broken", type=int, default=1000)
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    sys.exit(asyncio.run(run(options)))


main()
