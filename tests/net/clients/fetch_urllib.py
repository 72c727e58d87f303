import ssl
import sys
import urllib.request

trust = ssl.create_default_context(cafile=sys.argv[2])
print(urllib.request.urlopen(sys.argv[1], context=trust, timeout=20).read().decode())
