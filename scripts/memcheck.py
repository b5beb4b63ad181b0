#!/usr/bin/env python3
"""Prints what valgrind found in our libraries: `scripts/memcheck` calls it with the name of a run and the XML files of its processes.

A finding counts if one of our libraries called what did it, or allocated what was lost. Exits with 1 if there is one, or if no process was seen.
"""

import pathlib
import sys
import xml.etree.ElementTree

OURS = ("liburscope.so", "libze_loader.so")
# `tracing` keeps the one subscriber of a process for ever. It has no fields, so its address is the end of its block, which valgrind takes for lost.
KEPT = "dispatcher.rs"


def frames(stack):
    """The frames of a stack: library and description of each."""
    for frame in stack.iter("frame"):
        library = pathlib.PurePath(frame.findtext("obj", "")).name
        file = pathlib.PurePath(frame.findtext("file", "")).name
        line = f"{file}:{frame.findtext('line', '')}" if file else library
        yield library, f"{frame.findtext('fn', '?')} ({line})"


def main():
    run, files = sys.argv[1], sys.argv[2:]
    processes, with_ours, findings = 0, 0, 0
    for file in files:
        try:
            root = xml.etree.ElementTree.parse(file).getroot()
        except xml.etree.ElementTree.ParseError:
            # A process that was killed, or that became another program, has not finished its file.
            continue
        processes += 1
        for error in root.iter("error"):
            stacks = [list(frames(stack)) for stack in error.iter("stack")]
            # The first stack is where it happened, or where what was lost was allocated. What the dynamic loader does when it loads one of ours
            # is not ours.
            if not any(library.startswith(OURS) for library, _ in stacks[0][:12]):
                continue
            if error.findtext("kind") == "Leak_DefinitelyLost" and any(f"({KEPT}:" in text for _, text in stacks[0]):
                continue
            findings += 1
            what = error.findtext("what") or error.findtext("xwhat/text")
            print(f"{run}: {error.findtext('kind')}: {what}")
            for stack in stacks:
                print("".join(f"    {text}\n" for _, text in stack[:12]))
    if processes == 0:
        sys.exit(f"{run}: valgrind wrote nothing that can be read")
    print(f"{run}: {processes} processes, {findings} findings in our libraries")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
