"""A bucket queue over REST: a server, and a caller that has nothing but HTTP. Put, reserve, complete, look."""

import base64
import json
import re
import subprocess
import sys
from urllib.request import Request, urlopen


def call(method: str, path: str, body: object = None) -> dict:
    """One request, as any language can make it; beyond this machine it brings `Authorization: Bearer TOKEN`."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url + path, data, {"Content-Type": "application/json"}, method=method)
    with urlopen(request, timeout=60) as answer:
        return json.load(answer)


if __name__ == "__main__":
    serve = ["serve", "--store", "events.db", "--port", "0", "--log-level", "error"]
    server = subprocess.Popen(
        [sys.executable, "-m", "fairway.cli", *serve], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())  # its first line says where it listens
        assert found is not None
        url = found[0] + "/v1/queues/events"
        call("PUT", "", {"kind": "bucket", "attempts_max": 3})
        texts = [f"event {i}" for i in range(30)]
        call("POST", "/messages", [{"payload": base64.b64encode(text.encode()).decode()} for text in texts])
        seen = []
        while leases := call("POST", "/reserve", {"max": 10, "lease_seconds": 30})["leases"]:
            seen += [base64.b64decode(lease["payload"]).decode() for lease in leases]
            call("POST", "/complete", {"leases": [{"receipt": lease["receipt"]} for lease in leases]})
        print(len(seen), "messages, each once:", sorted(seen) == sorted(texts))
        print("left:", call("GET", "/stats")["ready"])
    finally:
        server.terminate()
        server.wait()
