# SPDX-License-Identifier: BSD-2-Clause
"""The rows of scripts/bench. Runs inside its network namespace, whose eth0 has MTU 4300."""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time

BUILD = os.environ["WEFT_BUILD"]
WEFT = [f"{BUILD}/bin/weft", "run", "--"]
TOOLS = f"{BUILD}/tests"


class Missing(Exception):
    """A row cannot be measured here: the text says why."""


def program_of(cmd):
    return os.path.basename(cmd[cmd.index("--") + 1] if "--" in cmd else cmd[0])


def pair(server, client, delay=0.4, timeout=60):
    """Output of both, once the client has ended."""
    s = subprocess.Popen(server, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        time.sleep(delay)
        c = subprocess.run(client, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=timeout)
        out, _ = s.communicate(timeout=timeout)
    except FileNotFoundError as e:
        raise Missing(f"{e.filename} is not installed")
    except subprocess.TimeoutExpired:
        raise Missing(f"{program_of(client)}: no end within {timeout} s")
    finally:
        s.kill()
        s.wait()
    if c.returncode or s.returncode:
        last = (c.stdout + out).strip().splitlines()[-1:] or ["no output"]
        raise Missing(f"{program_of(client)}: {last[0]}")
    return c.stdout, out


def perftest(program, options, column, path="shm", repeat=1):
    """Column of perftest's row of figures on this host, the median of `repeat` runs."""
    values = []
    for _ in range(repeat):
        side = ["env", f"WEFT_PATH={path}"] + WEFT + [program, "-x", "0"] + options
        out, _ = pair(side, side + ["localhost"])
        rows = [l.split() for l in out.splitlines() if re.match(r"^\s*\d+\s+\d+\s", l)]
        if not rows:
            raise Missing(f"{program}: no figures")
        values.append(float(rows[-1][column]))
    return statistics.median(values)


def ucx(options, column, env=None, repeat=1):
    """Column of ucx_perftest's final row: 1 median latency, 5 MiB/s, 7 messages/s."""
    values = []
    for _ in range(repeat):
        cmd = ["env"] + [f"{k}={v}" for k, v in (env or {}).items()] + ["ucx_perftest", "-p", "13999", "-f"]
        out, _ = pair(cmd + options, cmd + options + ["127.0.0.1"])
        rows = [l.split() for l in out.splitlines() if re.match(r"^\s+\d+\s+[\d.]", l)]
        if not rows:
            raise Missing("ucx_perftest: no figures")
        values.append(float(rows[-1][column]))
    return statistics.median(values)


def figure(cmd):
    return float(subprocess.run(cmd, check=True, capture_output=True, text=True).stdout.split()[-1])


MIB = 1048576 / 1e6  # perftest and UCX print MiB/s

# ---- rows: each gives (Weft's figure, the peer's figure, or None) -------------------------------


def host_latency(q):
    n, r = ("100000", 1) if q else ("300000", 3)
    ours = perftest("ib_send_lat", ["-s", "8", "-n", n], 4, repeat=r)
    return ours, ucx(["-t", "tag_lat", "-s", "8", "-n", n], 1, {"UCX_TLS": "posix"}, r)


def host_rate(q):
    n, r = ("500000", 1) if q else ("3000000", 3)
    ours = perftest("ib_send_bw", ["-s", "8", "-n", n, "-Q", "32", "-N"], 4, repeat=r)
    return ours, ucx(["-t", "tag_bw", "-s", "8", "-n", n], 7, {"UCX_TLS": "posix"}, r) / 1e6


def host_bandwidth(size):
    def run(q):
        n, r = (str(max(200, int((1 if q else 4) * 1e9 / size))), 1 if q else 3)
        ours = perftest("ib_write_bw", ["-s", str(size), "-n", n, "-N"], 3, repeat=r) * MIB
        try:
            peer = ucx(["-t", "put_bw", "-d", "memory", "-x", "cma", "-D", "zcopy", "-s", str(size),
                        "-n", n], 5, repeat=r) * MIB
        except Missing as e:
            print(f"bench: {e}", file=sys.stderr)
            peer = None
        bare = figure([f"{TOOLS}/cma_loop", str(size), "0.5" if q else "2"])
        return ours, peer, bare
    return run


def udp_bandwidth(q):
    ours = perftest("ib_write_bw", ["-s", "1048576", "-D", "2" if q else "5", "-m", "4096"], 3, "udp",
                    1 if q else 3) * MIB
    stream = [f"{TOOLS}/udp_stream"]
    _, out = pair(stream, stream + ["127.0.0.1", "-t", "1" if q else "3"])
    return ours, float(out.split()[-1])


def udp_latency(q):
    n, r = ("20000", 1) if q else ("100000", 3)
    ours = perftest("ib_send_lat", ["-s", "8", "-n", n], 4, "udp", r)
    pingpong, peers = [f"{TOOLS}/udp_pingpong"], []
    for _ in range(r):
        out, _ = pair(pingpong, pingpong + ["-n", n, "127.0.0.1"])
        peers.append(float(out.split()[-1]))
    return ours, statistics.median(peers)


def qp_memory(q):
    p = subprocess.run(WEFT + [f"{TOOLS}/qp_memory", "2000" if q else "10000"], capture_output=True,
                       text=True)
    if p.returncode:
        raise Missing(p.stderr.strip() or "qp_memory failed")
    found = dict(l.split() for l in p.stdout.splitlines())
    return found


def qp_bytes(q):
    return float(qp_memory(q)["qp"]) / 1024, None


def resident(q):
    return float(qp_memory(True)["device"]) / 1024, None


def connects(q):
    """cmtime of rdmacm-utils: connections a second, all steps of both sides."""
    n = 200 if q else 1000
    start = time.time()
    out, _ = pair(WEFT + ["cmtime", "-b", "10.99.0.1"],
                  WEFT + ["cmtime", "-s", "10.99.0.1", "-c", str(n)], delay=1)
    m = re.search(r"^connect\s*[:\s]\s*([\d.]+)", out, re.M)
    if not m:
        raise Missing("cmtime: no figures")
    return n / (time.time() - start), None


def async_verbs(q):
    """The verb that costs most more through the async verbs than through libibverbs."""
    return figure(WEFT + [f"{TOOLS}/iba_cost", "200" if q else "2000"]), None


def idle_cpu(q):
    p = subprocess.Popen(WEFT + [f"{TOOLS}/stream", "-e"], stdout=subprocess.DEVNULL)
    time.sleep(1)

    def ticks():
        with open(f"/proc/{p.pid}/stat") as f:
            w = f.read().rpartition(")")[2].split()
        return int(w[11]) + int(w[12])

    try:
        before, seconds = ticks(), 2 if q else 10
        time.sleep(seconds)
        used = (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds * 100
    except FileNotFoundError:
        raise Missing("stream did not start")
    finally:
        p.kill()
        p.wait()
    return used, None


def ranks(program, *args):
    """The last figure that a uGNI program of two ranks prints."""
    cmd = [f"{BUILD}/bin/weft", "run", "-n", "2", "--", program, *args]
    r = subprocess.run(cmd, capture_output=True, text=True, timeout=120,
                       env={**os.environ, "WEFT_GNI_ONE_HOST": "1"})
    figures = re.findall(r"(\d+\.\d+)", r.stdout)
    if r.returncode or not figures:
        raise Missing(f"{os.path.basename(program)}: {(r.stdout + r.stderr).strip() or 'no output'}")
    return float(figures[-1])


def gni_latency(q):
    n, r = ("100000", 1) if q else ("300000", 3)
    ours = statistics.median(ranks(f"{BUILD}/examples/gni/smsg_pingpong", n) for _ in range(r))
    return ours, ucx(["-t", "tag_lat", "-s", "8", "-n", n], 1, {"UCX_TLS": "posix"}, r)


def gni_put(q):
    size = "65536"
    ours = statistics.median(ranks(f"{TOOLS}/gni_rates", "put") for _ in range(1 if q else 3))
    try:
        peer = ucx(["-t", "put_bw", "-d", "memory", "-x", "cma", "-D", "zcopy", "-s", size, "-n", "20000"],
                   5, repeat=1 if q else 3) * MIB
    except Missing as e:
        print(f"bench: {e}", file=sys.stderr)
        peer = None
    return ours, peer


def gni_amo(q):
    return statistics.median(ranks(f"{TOOLS}/gni_rates", "amo") for _ in range(1 if q else 3)), None


# name, unit, measure, peer, goal text, and whether (figure, ratio) reaches the first and second goal
ROWS = [
    ("same host, send latency, 8 B", "us", host_latency, "UCX posix tag_lat", "<= 2x, 1x",
     lambda v, r: r <= 2, lambda v, r: r <= 1),
    ("same host, send rate, 8 B", "M/s", host_rate, "UCX posix tag_bw", ">= 4 M/s, 8 M/s",
     lambda v, r: v >= 4, lambda v, r: v >= 8),
    ("same host, write, 64 KiB", "MB/s", host_bandwidth(65536), "UCX cma put_bw", ">= 1x, bare copy",
     lambda v, r: r >= 1, None),
    ("same host, write, 1 MiB", "MB/s", host_bandwidth(1048576), "UCX cma put_bw", ">= 1x, bare copy",
     lambda v, r: r >= 1, None),
    ("udp, write, 1 MiB, MTU 4096", "MB/s", udp_bandwidth, "bare UDP stream", ">= 3000, 4500",
     lambda v, r: v >= 3000, lambda v, r: v >= 4500),
    ("udp, send latency, 8 B", "us", udp_latency, "bare UDP ping-pong", "<= 1.5x, 1.2x",
     lambda v, r: r <= 1.5, lambda v, r: r <= 1.2),
    ("memory of an idle QP", "KB", qp_bytes, "", "< 16", lambda v, r: v < 16, None),
    ("resident memory added", "MB", resident, "", "< 10", lambda v, r: v < 10, None),
    ("rdma_cm connects", "1/s", connects, "", ">= 1000", lambda v, r: v >= 1000, None),
    ("async verbs, most above verbs", "us", async_verbs, "", "< 2", lambda v, r: v < 2, None),
    ("uGNI, SMSG latency, 8 B", "us", gni_latency, "UCX posix tag_lat", "<= 2x",
     lambda v, r: r <= 2, None),
    ("uGNI, RDMA put, 64 KiB", "MB/s", gni_put, "UCX cma put_bw", ">= 1x", lambda v, r: r >= 1, None),
    ("uGNI, AMOs", "M/s", gni_amo, "", ">= 1", lambda v, r: v >= 1, None),
    ("CPU of an idle program", "%", idle_cpu, "", "0", lambda v, r: v == 0, None),
]


def judge(row, value, ratio):
    first, second = row[5], row[6]
    try:
        if second and second(value, ratio):
            return "second goal"
        return "first goal" if first(value, ratio) else "below"
    except TypeError:
        return "no peer"


def measure(row, quick):
    name, unit, run, peer, goal = row[:5]
    result = {"row": name, "unit": unit, "goal": goal, "peer": peer}
    try:
        got = run(quick)
    except Missing as e:
        return {**result, "verdict": "not measured", "why": str(e)}
    value, other = got[0], got[1]
    ratio = value / other if other else None
    result.update(weft=round(value, 3), peer_figure=other and round(other, 3),
                  ratio=ratio and round(ratio, 2), verdict=judge(row, value, ratio))
    if len(got) > 2:
        result["bare_copy"] = round(got[2], 1)
        result["ratio_to_bare_copy"] = round(value / got[2], 2)
        if value >= got[2]:
            result["verdict"] = "second goal"
    return result


def machine():
    model = "?"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) // 1048576
    return {"cpu": model, "cpus": os.cpu_count(), "memory_gib": memory, "kernel": platform.release(),
            "load": os.getloadavg()[0]}


def show(r):
    def text(v):
        return "-" if v is None else f"{v:,.2f}" if v < 1000 else f"{v:,.0f}"
    peer = f"{r['peer']} {text(r.get('peer_figure'))}" if r["peer"] else ""
    print(f"{r['row']:30} {text(r.get('weft')):>9} {r['unit']:5} {peer:28} {text(r.get('ratio')):>7}  "
          f"{r['goal']:17} {r['verdict']}", flush=True)
    if "why" in r:
        print(f"    {r['why']}")
    if "bare_copy" in r:
        print(f"{'':46} {'bare process_vm_writev ' + text(r['bare_copy']):28} "
              f"{text(r['ratio_to_bare_copy']):>7}")


def markdown(m, quick, results):
    def text(v):
        return "" if v is None else f"{v:,.2f}" if v < 1000 else f"{v:,.0f}"
    lines = [f"{time.strftime('%Y-%m-%d')}, {m['cpu']}, {m['cpus']} CPUs, {m['memory_gib']} GiB, Linux "
             f"{m['kernel']}, load {m['load']:.1f} at the start{', --quick' if quick else ''}", "",
             "| row | Weft | peer | ratio | goal | reached |", "|---|---|---|---|---|---|"]
    for r in results:
        peer = f"{r['peer']} {text(r.get('peer_figure'))}".strip()
        if "bare_copy" in r:
            peer += f"; bare copy {text(r['bare_copy'])}"
        lines.append(f"| {r['row']} | {text(r.get('weft'))} {r['unit'] if 'weft' in r else ''} | {peer} | "
                     f"{text(r.get('ratio'))} | {r['goal']} | {r.get('why', r['verdict'])} |")
    return "\n".join(lines)


def write_markdown(path, table):
    """Between the marks of a page."""
    with open(path) as f:
        page = f.read()
    head, _, rest = page.partition("<!-- bench -->\n")
    _, _, tail = rest.partition("<!-- end -->")
    with open(path, "w") as f:
        f.write(f"{head}<!-- bench -->\n{table}\n<!-- end -->{tail}")


def main():
    ap = argparse.ArgumentParser(prog="bench")
    ap.add_argument("--quick", action="store_true")
    ap.add_argument("--json", metavar="FILE")
    ap.add_argument("--markdown", metavar="FILE")
    args = ap.parse_args()
    m = machine()
    print(f"{m['cpu']}, {m['cpus']} CPUs, {m['memory_gib']} GiB, Linux {m['kernel']}, load {m['load']:.1f}\n")
    print(f"{'':30} {'Weft':>9} {'':5} {'peer':28} {'ratio':>7}  {'goal':17} reached")
    results = []
    for row in ROWS:
        results.append(measure(row, args.quick))
        show(results[-1])
    if args.markdown:
        write_markdown(args.markdown, markdown(m, args.quick, results))
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"machine": m, "quick": args.quick, "time": int(time.time()), "rows": results}, f,
                      indent=2)
            f.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
