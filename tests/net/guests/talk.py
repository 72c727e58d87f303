"""Speaks on one connection what it is told to. argv: JSON with

    name      looked up first, as a program would, so that its addresses are known
    address   where to
    port
    sni       speak TLS and ask for this name; null for TLS without a name
    send      texts (latin-1), each sent once the answer to the one before has come
"""

import json
import socket
import ssl
import sys

told = json.loads(sys.argv[1])
try:
    if told.get("name"):
        print("addresses", socket.getaddrinfo(told["name"], told["port"], type=socket.SOCK_STREAM))
    line = socket.create_connection((told["address"], told["port"]), timeout=3)
    if "sni" in told:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        line = context.wrap_socket(line, server_hostname=told["sni"])
    for text in told["send"]:
        line.sendall(text.encode("latin-1"))
        try:
            line.settimeout(0.7)
            print("answer", line.recv(65536))
        except TimeoutError:
            print("no answer")
except OSError as problem:
    print("stopped", problem)
print("done")
