"""The cases of scripts/slurm, which calls this in its cluster. The current folder is on the disk that all nodes share.

A case is a function that returns what came out; the first line of its description is what the table says, the second what is expected.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import time

REPOSITORY = pathlib.Path(os.environ["repository"])
RUNTIME = REPOSITORY / "target/runtime"
WORK = pathlib.Path.cwd()
CASES = []

# What all nodes find in PATH. A rank of clean_ranks, with an urscope that reports into the folder of the case; the ranks of a step on a
# node share a folder of the node's own. `held` and `survived` start clean_ranks, where PROGRAM says so, and `late` starts a rank.
PROGRAMS = {
    "rank": """
here=/tmp/exchange-$SLURM_JOB_ID.$SLURM_STEP_ID.${SLURM_RESTART_COUNT:-0}
report=report-$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}-$SLURMD_NODENAME-$SLURM_PROCID
mkdir -p "$here"
exec urscope run --device software --format json --report "$report" -- "${PROGRAM:-clean_ranks}" "$here" "$@"
""",
    "held": """
clean_ranks "$@"
touch "held-$SLURM_PROCID"
sleep 300
""",
    "bare": """
exec urscope run --no-shim --device software -- clean_ranks "/tmp/exchange-$SLURM_JOB_ID.$SLURM_STEP_ID.0"
""",
    "late": """
sleep $SLURM_LOCALID
exec rank
""",
    "survived": """
clean_ranks "$@"
code=$?
touch "$1/closed-$SLURM_LOCALID"
exit $code
""",
}


def case(function):
    CASES.append(function)
    return function


def run(command):
    """Runs a command line in the folder of the case. Returns its exit code and what it wrote."""
    with open("commands", "a") as log:
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        ended = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, timeout=240, **output)
        log.write(f"$ {command}\n{ended.stdout}[{ended.returncode}]\n")
    return ended.returncode, ended.stdout


def script(name, text):
    """Writes a batch script."""
    pathlib.Path(name).write_text("#!/bin/bash\n" + text)


def submit(name, options=""):
    """Submits a batch script and returns the number of its job."""
    code, text = run(f"sbatch --parsable --output=%A-%a.out --open-mode=append {options} {name}")
    assert code == 0, text
    return text.split()[-1]


def until(what, condition, seconds=150):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, f"nothing came after {seconds} seconds: {what}"
        time.sleep(0.2)


def task(shown):
    """The number of a task of an array in what Slurm shows of it."""
    number = re.search(r"ArrayTaskId=(\d+)", shown)
    return int(number[1]) if number else 0


def finished(job):
    """Waits until a job and all tasks of its array have ended. Returns the exit code, or what ended it, of each."""
    until(f"the end of job {job}", lambda: run(f"squeue --noheader --jobs={job}")[1].strip() == "")
    text = run(f"scontrol --oneliner show job {job}")[1]
    found = re.findall(r"JobState=(\S+).*?ExitCode=(\d+):\d+", "\n".join(sorted(text.splitlines(), key=task)))
    return [code if state in ("COMPLETED", "FAILED") else state.lower() for state, code in found]


def ranks(numbers):
    """Numbers as ranges."""
    parts = []
    for number in sorted(set(numbers)):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{first}-{last}" if first != last else str(first) for first, last in parts)


# If rank 0 is faster, it frees the memory while another rank, which leaks it, still has it open.
BY_CHANCE = "freed-while-open"


def judged(report):
    """A report in short: the node, the verdict, the ranks, the findings with their counts, and why it is not a full verdict."""
    found = collections.Counter()
    for finding in report["findings"]:
        if finding["severity"] != "note" and finding["rule"] != BY_CHANCE:
            found[finding["rule"]] += finding["count"]
    hosts = ",".join(sorted({process["host"] for process in report["processes"]}))
    parts = [f"{hosts} {report['verdict']} of {ranks(process['rank'] for process in report['processes'])}", *(f"{rule} {count}" for rule, count in sorted(found.items()))]
    reason = [re.sub(r" \(pid \d+\)|:.*", "", report["reason"])] if report["reason"] else []
    return ", ".join(parts + reason)


def reports(pattern="report-*"):
    """The reports in the folder of the case in short. A judge leaves one, and other ranks an empty file."""
    files = [file for file in sorted(pathlib.Path().glob(pattern)) if file.stat().st_size]
    return [judged(json.loads(file.read_text())) for file in files]


def came_out(code, pattern="report-*"):
    return "; ".join([str(code), *reports(pattern)])


def main():
    words = sys.argv[1:]
    chosen = [case for case in CASES if not words or any(word in case.__doc__.splitlines()[0] for word in words)]
    if not chosen:
        sys.exit("scripts/slurm: no case has one of these in its name: " + ", ".join(words))
    (WORK / "bin").mkdir()
    for name, text in PROGRAMS.items():
        (WORK / "bin" / name).write_text("#!/bin/bash" + text)
        (WORK / "bin" / name).chmod(0o755)
    for name in ("clean", "clean_ranks"):
        app = subprocess.run([REPOSITORY / "scripts/compile-app", name], check=True, stdout=subprocess.PIPE, text=True)
        (WORK / "bin" / name).symlink_to(app.stdout.strip())
    folders = (WORK / "bin", REPOSITORY / "target/debug", os.environ["PATH"])
    # A step whose standard input ends may lose its connection to a rank that has ended.
    os.environ.update(PATH=":".join(map(str, folders)), SLURM_STDINMODE="none")
    print(run("srun --version")[1].strip())
    good = True
    for number, each in enumerate(chosen):
        name, expected = (line.strip() for line in each.__doc__.splitlines()[:2])
        folder = WORK / f"case-{number}"
        folder.mkdir()
        os.chdir(folder)
        began = time.monotonic()
        try:
            got = each()
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
        run("scancel --full --user=root")
        good &= got == expected
        wrong = "" if got == expected else f"\n  WRONG, see {folder.relative_to(REPOSITORY)}"
        print(f"{name} ({time.monotonic() - began:.0f} s)\n  expected  {expected}\n  got       {got}{wrong}", flush=True)
    sys.exit(not good)


@case
def _():
    """srun, 4 ranks
    0; node1 clean of 0-3"""
    code, text = run("srun -n 4 rank")
    assert text.count("the last rank to end on this host judges all of them") == 3, text
    return came_out(code)


@case
def _():
    """srun, 4 ranks, a leak
    1; node1 findings of 0-3, leaked-mapping 3"""
    return came_out(run("srun -n 4 rank leak")[0])


@case
def _():
    """urscope before srun, in a batch script
    0; node1 clean of 0-3"""
    script("job", "mkdir /tmp/e; urscope run --device software --format json --report report-1 -- srun -n 4 clean_ranks /tmp/e\n")
    return came_out(*finished(submit("job", "-n 4")))


@case
def _():
    """urscope before srun, on two nodes, one of which has the software device
    3; node1 partly-judged of 0-1, 2 ranks of the job ran on other hosts"""
    start = "mkdir -p /tmp/f; clean_ranks /tmp/f"
    script("job", f"urscope run --device software --format json --report report-1 -- srun bash -c '{start}'\n")
    return came_out(*finished(submit("job", "-N 2 --ntasks-per-node=2")))


@case
def _():
    """sbatch
    0; node1 clean of 0-3"""
    script("job", "srun rank\n")
    return came_out(*finished(submit("job", "-n 4")))


@case
def _():
    """sbatch, a leak
    1; node1 findings of 0-3, leaked-mapping 3"""
    script("job", "srun rank leak\n")
    return came_out(*finished(submit("job", "-n 4")))


@case
def _():
    """two steps at once, one with a leak
    1; node1 clean of 0-1; node1 findings of 0-1, leaked-mapping 1"""
    script("job", "mkdir a b; (cd a && srun --exact -n 2 rank) & (cd b && srun --exact -n 2 rank leak); code=$?; wait; exit $code\n")
    return came_out(finished(submit("job", "-n 4"))[0], "*/report-*")


@case
def _():
    """two mpiexec of MPICH at once in a batch script, one with a leak
    1; node1 clean of 0-1; node1 findings of 0-1, leaked-mapping 1"""
    script(
        "job",
        """
start() {
  mkdir "/tmp/$1"
  mpiexec -launcher fork -n 2 urscope run --device software --dir traces --format json --report "report-$1" -- clean_ranks "/tmp/$@"
}
start a & start b leak; code=$?; wait; exit $code
""",
    )
    path = f"{RUNTIME}/mpich-5.0.2/bin:{os.environ['PATH']}"
    return came_out(*finished(submit("job", f"-n 4 --export=ALL,PATH={path}")))


@case
def _():
    """mpiexec of MPICH, which starts its proxies with srun, on two nodes
    0; node1 clean of 0-1; node2 clean of 2-3"""
    script("job", "mpiexec -n 4 -ppn 2 rank\n")
    path = f"{RUNTIME}/mpich-5.0.2/bin:{os.environ['PATH']}"
    return came_out(*finished(submit("job", f"-N 2 --ntasks-per-node=2 --export=ALL,PATH={path}")))


@case
def _():
    """--mpi=pmi2, 4 ranks
    0; node1 clean of 0-3"""
    return came_out(run("srun --mpi=pmi2 -n 4 rank")[0])


@case
def _():
    """--mpi=pmi2, three nodes
    0; node1 clean of 0-3; node2 clean of 4; node3 clean of 5"""
    return came_out(run("srun --mpi=pmi2 -N 3 -n 6 rank")[0])


@case
def _():
    """--mpi=pmix, three nodes
    0; node1 clean of 0-3; node2 clean of 4; node3 clean of 5"""
    code, text = run("srun --mpi=pmix -N 3 -n 6 bash -c 'echo rank $PMIX_RANK; exec rank'")
    assert text.count("rank 5\n") == 1, text
    return came_out(code)


# Joins the job of MPI, and then does what the arguments say.
JOINED = """
import subprocess, sys
from mpi4py import MPI
everyone = MPI.COMM_WORLD
assert everyone.Get_size() == 4 and sys.argv[1] in MPI.Get_library_version()
code = subprocess.run(sys.argv[2:]).returncode
assert everyone.allreduce(1) == 4
sys.exit(code)
"""


@case
def _():
    """--mpi=pmi2, MPICH, 4 ranks
    0; node1 clean of 0-3"""
    script("joined", f"exec {RUNTIME}/impi-2021.18.1/bin/python joined.py MPICH clean_ranks $1\n")
    pathlib.Path("joined").chmod(0o755)
    pathlib.Path("joined.py").write_text(JOINED)
    library = RUNTIME / "mpich-5.0.2/lib"
    variables = f"PROGRAM=./joined LD_LIBRARY_PATH={library} MPI4PY_LIBMPI={library}/libmpi.so.12"
    return came_out(run(f"{variables} srun --mpi=pmi2 -n 4 rank")[0])


def intel_mpi(options, library):
    impi = RUNTIME / "impi-2021.18.1"
    variables = f"I_MPI_ROOT={impi} I_MPI_FABRICS=shm I_MPI_OFFLOAD=1 LD_LIBRARY_PATH={impi}/lib I_MPI_PMI_LIBRARY={library}"
    program = f"{impi}/bin/python {REPOSITORY}/tests/apps/mpi_ring.py"
    code, text = run(f"{variables} srun {options} -n 4 bash -c 'exec urscope run --device software --format json --report report-$SLURM_PROCID -- {program}'")
    return f"{came_out(code)}; data right in {text.count(': right')}"


@case
def _():
    """Intel MPI, --mpi=pmi2, I_MPI_PMI_LIBRARY, 4 ranks
    0; node1 clean of 0-3; data right in 4"""
    return intel_mpi("--mpi=pmi2", "/usr/lib/x86_64-linux-gnu/libpmi2.so.0")


@case
def _():
    """Intel MPI, --mpi=none, I_MPI_PMI_LIBRARY, 4 ranks
    0; node1 clean of 0-3; data right in 4"""
    return intel_mpi("--mpi=none", "/usr/lib/x86_64-linux-gnu/libpmi.so.0")


@case
def _():
    """a job array, of which one task has a leak
    0 1 0; node1 clean of 0-1; node1 findings of 0-1, leaked-mapping 1; node1 clean of 0-1"""
    script("job", 'mkdir $SLURM_ARRAY_TASK_ID; cd $SLURM_ARRAY_TASK_ID; [[ $SLURM_ARRAY_TASK_ID != 1 ]] || mode=leak; srun rank $mode\n')
    codes = finished(submit("job", "--array=0-2 -n 2"))
    return came_out(" ".join(codes), "*/report-*")


@case
def _():
    """--ntasks-per-node, three nodes
    0; node1 clean of 0-1; node2 clean of 2-3; node3 clean of 4-5"""
    return came_out(run("srun -N 3 --ntasks-per-node=2 rank")[0])


@case
def _():
    """three nodes of 3, 1 and 1 ranks, a leak
    1; node1 findings of 0-2, leaked-mapping 2; node2 clean of 3; node3 clean of 4"""
    return came_out(run("srun -N 3 -n 5 --distribution=arbitrary --nodelist=node1,node1,node1,node2,node3 rank leak")[0])


@case
def _():
    """--multi-prog, two programs
    1; node1 findings of 0-3, leaked-mapping 1"""
    pathlib.Path("programs").write_text("0-2 rank\n3 rank leak\n")
    return came_out(run("srun -n 4 --multi-prog programs")[0])


@case
def _():
    """--multi-prog, one of 4 ranks without urscope
    2; node1 partly-judged of 0-1,3, 3 of the 4 ranks of the job ran under urscope here"""
    pathlib.Path("programs").write_text("0-1 rank\n2 bare\n3 rank\n")
    return came_out(run("srun -n 4 --multi-prog programs")[0])


@case
def _():
    """a heterogeneous job, 2 and 1 ranks
    0; node1 clean of 0-1; node2 clean of 2"""
    return came_out(run("srun -n 2 rank : -n 1 rank")[0])


@case
def _():
    """a heterogeneous step, 2 and 2 ranks
    0; node1 clean of 0-1; node2 clean of 2-3"""
    return came_out(run("salloc -N 2 --ntasks-per-node=2 srun -N 1 -n 2 rank : -N 1 -n 2 rank")[0])


@case
def _():
    """ranks that begin one after the other and do not wait for each other
    0; node1 clean of 0-2"""
    return came_out(run("PROGRAM=clean srun -n 3 late")[0])


@case
def _():
    """a rank that is killed
    137; node1 partly-judged of 0-1, rank 1 died of SIGKILL"""
    return came_out(run("PROGRAM=survived srun -n 2 rank killed")[0])


def held(options=""):
    """Submits a job with two ranks, of which one has a leak. They go on for minutes."""
    script("job", "PROGRAM=held srun rank leak\n")
    job = submit("job", f"-n 2 {options}")
    hold()
    return job


def hold(count=2):
    until("ranks that hold memory", lambda: len(list(pathlib.Path().glob("held-*"))) == count)


def requeue(job):
    run(f"scontrol requeue {job}")
    until("the job to be pending", lambda: "JobState=PENDING" in run(f"scontrol show job {job}")[1])
    run(f"scontrol update JobId={job} StartTime=now")


@case
def _():
    """scancel of a job
    cancelled; node1 findings of 0-1, leaked-mapping 1, the program died of SIGTERM"""
    job = held()
    run(f"scancel {job}")
    return came_out(*finished(job))


@case
def _():
    """scancel of a step, which kills urscope too; then urscope check
    137; node1 findings of 0-1, leaked-mapping 1"""
    job = held()
    run(f"scancel {job}.0")
    codes = finished(job)
    assert reports() == []
    run("urscope check --format json urscope-traces/* >report-later")
    return came_out(*codes)


@case
def _():
    """a time limit
    timeout; node1 findings of 0-1, leaked-mapping 1, the program died of SIGTERM"""
    return came_out(*finished(held("--time=0:01")))


@case
def _():
    """scontrol requeue; the first run has a leak
    0; node1 findings of 0-1, leaked-mapping 1, the program died of SIGTERM; node1 clean of 0-1"""
    script("job", "((${SLURM_RESTART_COUNT:-0} > 0)) || export PROGRAM=held mode=leak; srun rank $mode\n")
    job = submit("job", "-n 2")
    hold()
    requeue(job)
    return came_out(*finished(job))


@case
def _():
    """urscope run --dir on a disk of three nodes
    0; node1 clean of 0-1; node2 clean of 2-3; node3 clean of 4-5"""
    return came_out(run("URSCOPE_DIR=traces srun -N 3 --ntasks-per-node=2 rank")[0])


def documented(program):
    """Submits the batch script of docs/mpi.md, with fewer nodes and ranks."""
    text = (REPOSITORY / "docs/mpi.md").read_text()
    text = re.search(r"```sh illustration\n#!/bin/bash\n(#SBATCH.*?)```", text, re.DOTALL)[1]
    changes = {"--nodes=64": "--nodes=3", "-per-node=12": "-per-node=2", " run ": " run --device software ", "./my_program": program}
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    script("job", text)
    run("srun -N 3 bash -c 'rm -rf /tmp/exchange-?; mkdir /tmp/exchange-0 /tmp/exchange-1'")
    return submit("job")


def merged(job):
    """What came out of it. Each node has judged once."""
    codes = finished(job)
    assert pathlib.Path(f"{job}-4294967294.out").read_text().count("\nprocesses\n") == 4, "three nodes, and the merged result"
    run("urscope merge --format json node-*.urscope >report-merged")
    return came_out(*codes)


@case
def _():
    """the batch script of docs/mpi.md, three nodes
    0; node1,node2,node3 clean of 0-5"""
    return merged(documented("clean_ranks /tmp/exchange-0"))


@case
def _():
    """the batch script of docs/mpi.md, three nodes, a leak
    1; node1,node2,node3 findings of 0-5, leaked-mapping 3"""
    return merged(documented("clean_ranks /tmp/exchange-0 leak"))


@case
def _():
    """the batch script of docs/mpi.md, requeued; the first run has a leak
    0; node1,node2,node3 clean of 0-5"""
    count = "${SLURM_RESTART_COUNT:-0}"
    script("program", f"(({count} > 0)) && exec clean_ranks /tmp/exchange-1\nexec held /tmp/exchange-0 leak\n")
    pathlib.Path("program").chmod(0o755)
    job = documented("./program")
    hold(6)
    requeue(job)
    return merged(job)


main()
