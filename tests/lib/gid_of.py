# SPDX-License-Identifier: BSD-2-Clause
"""Index of a GID in the output of ibv_devinfo -v (standard input): gid_of.py ADDRESS"""
import ipaddress
import re
import sys

want = ipaddress.ip_address(sys.argv[1])
for index, gid in re.findall(r"GID\[\s*(\d+)\]:\s*([0-9a-fA-F:.]+)", sys.stdin.read()):
    if ipaddress.ip_address(gid.rstrip(",")) == want:
        print(index)
        sys.exit(0)
sys.exit(1)
