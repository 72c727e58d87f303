"""Sends DNS queries as they are. argv: server ("" for the one of resolv.conf), udp or tcp, hex...

One line for each: the reply in hex, or `none` and why."""

import socket
import sys

server, transport, *queries = sys.argv[1:]
if not server:
    with open("/etc/resolv.conf") as file:
        server = next(line.split()[1] for line in file if line.startswith("nameserver"))
family = socket.AF_INET6 if ":" in server else socket.AF_INET
for query in map(bytes.fromhex, queries):
    try:
        with socket.socket(family, socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM) as asking:
            asking.settimeout(2)
            asking.connect((server, 53))
            if transport == "tcp":
                asking.sendall(len(query).to_bytes(2, "big") + query)
                reply = asking.recv(2)
                length = int.from_bytes(reply, "big")
                reply = b""
                while len(reply) < length and (part := asking.recv(length)):
                    reply += part
            else:
                asking.send(query)
                reply = asking.recv(65536)
            print(reply.hex() or "none empty", flush=True)
    except OSError as problem:
        print("none", problem, flush=True)
print("done")
