#!/usr/bin/env python3
"""What recording adds to the launches and copies of PyTorch in a process that shares memory. It needs PyTorch and a GPU.

Three pairs of processes run at the same time, two without urscope and one under `urscope run`. They take turns on one processor, so that a slow
minute affects all. In each pair, one process sends a tensor by torch.multiprocessing, and the other works on it. A sample is the mean time of 100
calls, without the wait behind them. Processes of one program differ by some percent, so this is done several times with new ones: the figures are
medians of them, and the two pairs without urscope show how far those differ.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

CALLS = 100
KINDS = {"add_ on a received tensor": 0, "copy_ of a received tensor": 1, "add_ on another tensor": 2}


def receive(queue, done):
    """The process that works on the tensor: reads a kind and a number of samples from its input, and prints the samples in nanoseconds."""
    import torch

    tensor = queue.get()
    own = torch.zeros_like(tensor)
    torch.cuda.synchronize()
    work = (lambda: tensor.add_(1), lambda: own.copy_(tensor), lambda: own.add_(1))
    asked, answers = os.fdopen(int(os.environ["ASKED"])), os.fdopen(int(os.environ["ANSWERS"]), "w")
    print("ready", file=answers, flush=True)
    for line in asked:
        kind, count = (int(number) for number in line.split())
        samples = []
        for _ in range(count):
            begin = time.perf_counter_ns()
            for _ in range(CALLS):
                work[kind]()
            samples.append((time.perf_counter_ns() - begin) / CALLS)
            torch.cuda.synchronize()
        print(*map(round, samples), file=answers, flush=True)
    del tensor
    done.put(True)


def pair():
    import torch
    import torch.multiprocessing as processes

    queue, done = processes.Queue(), processes.Queue()
    receiver = processes.Process(target=receive, args=(queue, done))
    receiver.start()
    os.close(int(os.environ["ASKED"]))
    tensor = torch.zeros(1 << 16, device="cuda")
    torch.cuda.synchronize()
    queue.put(tensor)
    done.get()
    receiver.join()


class Side:
    def __init__(self, command):
        asked, answers = os.pipe(), os.pipe()
        environment = dict(os.environ, ASKED=str(asked[0]), ANSWERS=str(answers[1]))
        self.process = subprocess.Popen(
            [*command, sys.executable, __file__, "--pair"], env=environment, pass_fds=(asked[0], answers[1])
        )
        os.close(asked[0])
        os.close(answers[1])
        self.asked, self.answers = os.fdopen(asked[1], "w"), os.fdopen(answers[0])
        if self.answers.readline() != "ready\n":
            sys.exit("scripts/bench pytorch: the processes did not start; is there a GPU, and PyTorch for it?")
        self.samples = {kind: [] for kind in KINDS}

    def take_turn(self, kind, count):
        print(KINDS[kind], count, file=self.asked, flush=True)
        self.samples[kind] += map(int, self.answers.readline().split())

    def end(self):
        self.asked.close()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urscope", default="target/release/urscope", help="the command (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=40, help="turns of 2,000 calls (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="how often the processes are started (default: %(default)s)")
    parser.add_argument("--pair", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.pair:
        return pair()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rounds = [measured(arguments) for _ in range(arguments.rounds)]
    for kind in KINDS:
        for name, of in (("first percentile", lambda all: sorted(all)[len(all) // 100]), ("median", statistics.median)):
            figures = [[of(samples[kind]) for samples in sides] for sides, _ in rounds]
            bare = statistics.median(first for first, _, _ in figures)
            added = [f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})" for ratios in (
                [traced / first for first, _, traced in figures],
                [second / first for first, second, _ in figures],
            )]
            print(f"{kind}, {name}: {bare:.0f} ns; traced {added[0]} times as long; another one without urscope {added[1]}")
    # The calls on the tensor that nobody has received are not recorded.
    size = statistics.median(size for _, size in rounds)
    print(f"{size / (2 * 2000 * arguments.turns):.1f} bytes of the traces for each call on a received tensor")


def measured(arguments):
    """The samples of the three pairs, each by kind, and the size of the traces in bytes."""
    traces = tempfile.mkdtemp(prefix="urscope-bench-")
    sides = [Side([]), Side([]), Side([arguments.urscope, "run", "--no-check", "--dir", traces, "--"])]
    for turn in range(arguments.turns):
        for kind in KINDS:
            for side in sides if turn % 2 else sides[::-1]:
                side.take_turn(kind, 2000 // CALLS)
    for side in sides:
        side.end()
    size = sum(os.path.getsize(os.path.join(traces, name)) for name in os.listdir(traces))
    shutil.rmtree(traces)
    return [side.samples for side in sides], size


if __name__ == "__main__":
    main()
