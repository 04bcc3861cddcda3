#!/usr/bin/env python3
"""Follows the hot list that hotsniff publishes, as docs/PROTOCOL.md says.

    subscriber.py [redis://user:password@host:port] [channel]

Prints the whole list as one line of JSON, first when it is known, then
whenever a key comes or goes or changes its state or action.
"""
import base64
import json
import random
import select
import socket
import sys
import time
from urllib.parse import unquote, urlsplit

MAX_BYTES, MAX_KEYS, MAX_KEY, MAX_NODES, MAX_TTL = 1 << 20, 1000, 1024, 1024, 600_000
SILENCE = 6.0  # seconds without a word after which a connection is asked whether it lives
RANK = {"cooling": 0, "hot": 1, "pinned": 2}
ACTIONS = ("localize", "replicate", "aggregate", "limit")


class Connection:
    """Commands out, replies in: RESP2."""

    def __init__(self, url):
        self.sock = socket.create_connection((url.hostname or "127.0.0.1", url.port or 6379), 2)
        self.sock.settimeout(SILENCE)  # a reply that began must go on
        self.buf = b""
        if url.password:
            self.ask("AUTH", *([unquote(url.username)] if url.username else []), unquote(url.password))

    def send(self, *args):
        args = [a if isinstance(a, bytes) else str(a).encode() for a in args]
        self.sock.sendall(b"*%d\r\n" % len(args) + b"".join(b"$%d\r\n%s\r\n" % (len(a), a) for a in args))

    def ask(self, *args):
        self.send(*args)
        reply = self.reply()
        if isinstance(reply, Exception):
            raise reply
        return reply

    def ready(self, seconds):
        return bool(self.buf) or bool(select.select([self.sock], [], [], seconds)[0])

    def fill(self):
        more = self.sock.recv(1 << 16)
        if not more or len(self.buf) > 2 * MAX_BYTES:
            raise ConnectionError("closed by redis" if not more else "reply too long")
        self.buf += more

    def reply(self):
        while b"\r\n" not in self.buf:
            self.fill()
        line, self.buf = self.buf.split(b"\r\n", 1)
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            return ConnectionError(rest.decode(errors="replace"))
        if kind == b"$" and int(rest) >= 0:
            n = int(rest)
            while len(self.buf) < n + 2:
                self.fill()
            value, self.buf = self.buf[:n], self.buf[n + 2:]
            return value
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return rest  # +OK, a number, or nothing: not looked at here


def number(v, hi):
    return min(max(v, 0), hi) if isinstance(v, (int, float)) and not isinstance(v, bool) else 0


def decode(payload):
    """Returns a list, None for what is none; raises on what is broken."""
    if len(payload) > MAX_BYTES:
        raise ValueError("too large")
    l = json.loads(payload)
    if l.get("schema") != "hotsniff.list/v1":
        return None
    node, order = l["node"], [l["epoch"], l["seq"], l["at"], l["ttl_ms"]]
    if not isinstance(node, str) or not 1 <= len(node.encode()) <= 255 or any(c <= " " or "\x7f" <= c < "\xa0" for c in node):
        raise ValueError("bad node")
    if any(type(n) is not int or not 0 < n < 1 << 53 for n in order):
        raise ValueError("bad numbers")
    keys = {}
    if len(l.get("keys") or []) > MAX_KEYS:
        raise ValueError("too many keys")
    for k in l.get("keys") or []:
        b64 = k.get("key_base64")
        raw = base64.b64decode(b64, validate=True) if b64 else k["key"].encode()
        if len(raw) > MAX_KEY:
            raise ValueError("long key")
        # Of two entries with the same key and port the first counts.
        keys.setdefault((raw, number(k.get("port"), 65535)), {
            "raw": raw, "key": k["key"], "key_base64": b64, "share": number(k.get("share"), 1),
            "state": k["state"] if k.get("state") in RANK else "hot",
            "action": k["action"] if k.get("action") in ACTIONS else "none",
            "rate": number(k.get("accesses_per_second"), 1e12), "ttl": number(k.get("ttl_ms"), MAX_TTL)})
    return {"node": node, "order": order[:2], "at": order[2], "ttl": min(order[3], MAX_TTL),
            "rate": number(l.get("accesses_per_second"), 1e12), "keys": list(keys.values())}


class HotList:
    """The newest list of each node, merged."""

    def __init__(self):
        self.nodes, self.known, self.printed = {}, False, None

    def take(self, payload, retained):
        try:
            l = decode(payload)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return  # whoever may publish may send anything
        if l is None:
            return
        left = min(l["ttl"], l["at"] + l["ttl"] - time.time() * 1000) if retained else l["ttl"]
        old = self.nodes.get(l["node"])
        if left > 0 and (l["order"] > old["order"] if old else len(self.nodes) < MAX_NODES):
            l["lapse"] = time.monotonic() + left / 1000
            self.nodes[l["node"]] = l

    def merge(self):
        hot, total = {}, sum(l["rate"] for l in self.nodes.values())
        for _, l in sorted(self.nodes.items()):
            for k in l["keys"]:
                rate = k["rate"] or k["share"] * l["rate"]
                weight = rate + (1e18 if k["state"] == "pinned" else 0)
                h = hot.setdefault(k["raw"], {**k, "rate": 0, "weight": -1})
                if weight > h["weight"]:
                    h["weight"], h["action"] = weight, k["action"]
                h["state"] = max(h["state"], k["state"], key=RANK.get)
                h["rate"], h["share"] = h["rate"] + rate, max(h["share"], k["share"])
        for h in hot.values():
            h["share"] = round(min(h["rate"] / total, 1) if total > 0 else h["share"], 4)
        names = ("key", "key_base64", "state", "action", "share")
        return [{n: h[n] for n in names if h[n] is not None} for h in sorted(hot.values(), key=lambda h: (-h["share"], h["raw"]))]

    def show(self):
        now = time.monotonic()
        for name, l in list(self.nodes.items()):
            if now >= l["lapse"]:  # nobody renewed it: each key lives out its own time
                l["keys"] = [k for k in l["keys"] if now < l["lapse"] + k["ttl"] / 1000]
                if not l["keys"]:
                    del self.nodes[name]
        hot = self.merge()
        sign = sorted((k["key"], k["state"], k["action"]) for k in hot)
        if self.known and sign != self.printed:
            self.printed = sign
            print(json.dumps(hot), flush=True)


def follow(url, channel, hot):
    sub = Connection(url)
    sub.ask("SUBSCRIBE", channel)  # confirmed: from here on nothing is missed
    reader = Connection(url)  # a RESP2 connection that subscribed cannot read keys
    for node in reader.ask("ZREVRANGE", "hotsniff:nodes", 0, MAX_NODES - 1):
        hot.take(reader.ask("GETRANGE", b"hotsniff:list:" + node, 0, MAX_BYTES), True)
    reader.sock.close()
    hot.known = True
    heard, asked = time.monotonic(), False
    while True:
        hot.show()
        if sub.ready(0.25):
            message = sub.reply()  # any answer is a sign of life, also that we may not PING
            heard, asked = time.monotonic(), False
            if isinstance(message, list) and message[0] == b"message":
                hot.take(message[2], False)
        elif asked and time.monotonic() > heard + 2 * SILENCE:
            raise ConnectionError("no sign of life")
        elif not asked and time.monotonic() > heard + SILENCE:
            asked = True
            sub.send("PING")


def main():
    url = urlsplit(sys.argv[1] if len(sys.argv) > 1 else "redis://127.0.0.1:6379")
    channel = sys.argv[2] if len(sys.argv) > 2 else "hotsniff:hot"
    hot = HotList()
    while True:
        try:
            follow(url, channel, hot)
        except OSError as e:
            print("subscriber:", e, file=sys.stderr)
        hot.show()
        time.sleep(random.uniform(0.5, 1))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
