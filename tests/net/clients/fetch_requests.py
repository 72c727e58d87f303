import sys

import requests

print(requests.get(sys.argv[1], verify=sys.argv[2], timeout=20).text)
