//! Processes of a run that leave no trace, or whose trace is not where urscope looks: the run is never clean, and the
//! verdict names them.

use std::path::PathBuf;

use urscope_tests::{Adapter, Release, TestRun, apps, users};

fn program(name: &str) -> PathBuf {
    apps::executable(name, Release::R2026_2)
}

/// Runs a script as two users. `$CLEAN` and `$FAULTY` are programs, of which the second one frees memory that is open.
/// `judged NAME CODE TEXT` says what urscope must have ended with and written to `out`.
#[track_caller]
fn holds(script: &str) {
    let judged = r#"
        judged() { local code=$?; [[ $code == "$2" ]] && tr -s '\n ' ' ' <out | grep -q -- "$3" || fail "$1: exit code $code: $(cat out)"; }
    "#;
    let programs = ["clean", "free_while_open", "mistakes"].map(program);
    let runtime = Release::R2026_2.folder();
    let [clean, faulty, mistakes] = &programs;
    let variables = [("CLEAN", &**clean), ("FAULTY", faulty), ("MISTAKES", mistakes), ("RUNTIME", &runtime)];
    let ended = users::script(&format!("{judged}{script}echo done"), &variables);
    assert_eq!((ended.code, &*ended.stdout), (0, "done\n"), "{}{}", ended.stdout, ended.stderr);
}

/// The process sees another directory at the path, and writes its trace there.
#[test]
fn a_trace_behind_a_mount_is_missed() {
    holds(
        r#"
        lost='could not .* its trace.* nor could 1 other process'
        run() { "$URSCOPE" run --device software --dir "$PWD/$1" -- bash -c "\"$CLEAN\"; $2" >out 2>&1; }
        run seen "\"$FAULTY\""
        judged "the same without a mount" 1 'freed 8 MiB while'
        run a "unshare -m bash -c 'mount -t tmpfs none $PWD/a && \"$FAULTY\"'"
        judged "its own mount" 2 "$lost"
        run b "unshare -mn bash -c 'mount -t tmpfs none $PWD/b && \"$FAULTY\"'"
        judged "its own mount and network" 2 "$lost"
        unshare -m "$URSCOPE" run --device software --dir "$PWD/c" -- bash -c "\"$CLEAN\"; mount -t tmpfs none c && \"$FAULTY\"; umount c" >out 2>&1
        judged "a mount for a while" 2 "$lost"
        run d "unshare -m bash -c 'mount -t tmpfs none $PWD && \"$FAULTY\"; [[ ! -e $PWD/d ]]'"
        judged "a mount above" 2 "$lost"
        "#,
    );
}

/// The directory of the run is not made there, and its absence is said.
#[test]
fn a_trace_in_another_root_directory_is_missed() {
    holds(
        r#"
        mkdir root; for folder in usr bin lib lib64 proc dev etc tmp; do mkdir "root/$folder"; done
        cat >inside <<END
            for folder in usr bin lib lib64 proc dev etc; do mount --rbind /\$folder root/\$folder; done
            for folder in $(dirname "$FAULTY") $(dirname "$URSCOPE") $RUNTIME "\$ZEL_LIBRARY_PATH"; do
                mkdir -p "root/\$folder"; mount --bind "\$folder" "root/\$folder"
            done
            "$CLEAN"; chroot root "$FAULTY"
END
        "$URSCOPE" run --device software --dir "$PWD/traces" -- unshare -m bash inside >out 2>&1
        judged "another root directory" 2 'could not write its trace: No such file'
        [[ ! -e root$PWD ]] || fail "the directory was made in the other root directory"
        "#,
    );
}

/// What a program removes itself, also where others may write.
#[test]
fn a_trace_that_the_program_removes_is_missed() {
    holds(
        r#"
        cd "$VICTIM_FOLDER"
        for mode in 1777 755; do
            mkdir -m $mode t$mode; chown $VICTIM t$mode
            victim "$URSCOPE" run --device software --dir t$mode -- bash -c '"$FAULTY"; rm t'$mode'/*.fxt; "$CLEAN"' >out 2>&1
            judged "mode $mode" 2 'could not keep its trace urscope-free_while_open-'
        done
        "#,
    );
}

/// Neither can `process-times.jsonl` be written at that moment.
#[test]
fn a_process_that_cannot_write_while_nobody_can_is_named() {
    holds(
        r#"
        lost='clean (pid [0-9]*) could not write its trace'
        cd "$VICTIM_FOLDER"
        victim "$URSCOPE" run --device software --dir t -- bash -c 'chmod 500 t; "$CLEAN" & wait; chmod 700 t; "$CLEAN"' >out 2>&1
        judged "a directory that is read-only for a while" 2 "$lost"

        cd ..; mkdir small
        cat >full <<'END'
            mount -t tmpfs -o size=2m none small
            "$URSCOPE" run --device software --dir "$PWD/small/t" -- bash -c \
                'dd if=/dev/zero of=small/fill bs=1k 2>/dev/null; "$CLEAN"; rm small/fill; "$CLEAN"'
END
        unshare -m bash full >out 2>&1
        judged "a disk that is full for a while" 2 "$lost"

        cd "$VICTIM_FOLDER"; mkdir -m 1777 shared; chmod 1777 shared; attacker touch shared/process-times.jsonl
        victim "$URSCOPE" run --device software --dir shared -- bash -c '(ulimit -f 0; "$CLEAN"); "$CLEAN"' >out 2>&1
        judged "a file of another user" 2 "$lost"

        victim mkdir large
        line='{"boot_id":"00000000-0000-0000-0000-000000000000","pid_namespace":4026531836,"pid":1,"start":1,"alive_ns":1,"gone_ns":2,"signal":0}'
        yes "$line" | head -c 20000000 >large/process-times.jsonl; chown $VICTIM large/process-times.jsonl
        victim "$URSCOPE" run --device software --dir large -- bash -c '(ulimit -f 0; "$CLEAN"); "$CLEAN"' >out 2>&1
        judged "a large file" 2 "$lost"
        victim "$URSCOPE" run --expect-signal KILL --device software --dir large -- "$MISTAKES" idle_consumer_killed >out 2>&1
        judged "the end of a process beside a large file" 1 'freed .* while'
        "#,
    );
}

/// It can tell urscope nothing, but its memory is looked at.
#[test]
fn a_process_whose_trace_a_filter_prevents_is_named() {
    for adapter in [Adapter::V1, Adapter::V2] {
        let run = |mode: &str| {
            let test_run = TestRun::of_program("/bin/sh").adapter(adapter).arg("-c").arg("$0; $1 $2");
            test_run.arg(program("clean")).arg(program("odd_process")).arg(mode).run()
        };
        let outcome = run("without_fchmod");
        let report = outcome.report();
        assert_eq!((report.verdict(), report.processes().len()), ("clean", 3), "{}", outcome.stderr);
        let outcome = run("without_rename");
        let report = outcome.report();
        assert_eq!((outcome.code, report.verdict()), (2, "partly-judged"), "{}", outcome.stderr);
        let names = |said: &str| said.starts_with("odd_process (pid ") && said.contains(" could not write its trace");
        assert!(report.reason().is_some_and(names), "{report:#?}");
    }
}

/// Without a watch, files may have come and gone.
#[test]
fn a_directory_that_cannot_be_watched_keeps_a_run_from_being_clean() {
    holds(
        r#"
        # Nobody else runs anything as this user.
        VICTIM=2003; chown $VICTIM "$VICTIM_FOLDER"; cd "$VICTIM_FOLDER"
        cat >hold.py <<'END'
import ctypes, sys, time
c = ctypes.CDLL(None)
while c.inotify_init() >= 0: pass
open(sys.argv[1], 'w')
time.sleep(60)
END
        (exec setpriv --reuid=$VICTIM --regid=$VICTIM --clear-groups /usr/bin/python3 hold.py "$SHARED/held") &
        until [[ -e $SHARED/held ]]; do sleep 0.02; done
        victim "$URSCOPE" run --device software --dir t -- "$CLEAN" >out 2>&1
        judged "no inotify instance" 2 'the directory of the traces could not be watched .*max_user_instances'
        kill $!; wait
        victim "$URSCOPE" run --device software --dir t -- "$CLEAN" >out 2>&1
        judged "with one" 0 'clean'
        "#,
    );
}

/// Tells the socket of a run, whose name everybody can read, what another user wants it to believe. It is given the
/// name of the run, too.
const FORGE: &str = r#"
cd "$VICTIM_FOLDER"
cat >forge.py <<'END'
import json, os, socket, sys, time
mode, names, done = sys.argv[1:]
while not os.path.exists(names): time.sleep(0.01)
address, run, leader = open(names).read().split()
namespace, known = os.stat('/proc/self/ns/pid').st_ino, set()
def tell(**what):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect('\0' + address)
    connection.send(json.dumps(dict(run=run, pid_namespace=namespace, **what)).encode())
    open(done + '.told', 'w')
    return connection
def below(pid):
    for thread in os.listdir(f'/proc/{pid}/task'):
        for child in open(f'/proc/{pid}/task/{thread}/children').read().split():
            yield int(child)
            yield from below(child)
def start(pid): return int(open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[19])
if mode == 'flood': os.fork(), os.fork(), open(done + '.told', 'w')
while not os.path.exists(done):
    try:
        if mode == 'untraced': tell(pid=os.getpid(), start=start('self'), untraced='somebody could not write a trace: see evil.example')
        for _ in range(5000 if mode == 'flood' else 0):
            with socket.socket(socket.AF_UNIX) as connection: connection.connect('\0' + address)
        for pid in below(leader) if mode == 'died' else []:
            if pid not in known:
                known.add(pid)
                if os.fork() == 0:
                    held = tell(pid=pid, start=start(pid), untraced='', trace='')
                    time.sleep(0.3)
                    os._exit(0)
    except (OSError, IndexError): pass
    if mode == 'untraced': time.sleep(0.1)
END
forged() { # MODE PROGRAM... writes to out
    rm -rf "$SHARED/"* t; local mode=$1; shift
    attacker /usr/bin/python3 forge.py "$mode" "$SHARED/names" "$SHARED/done" &
    victim "$URSCOPE" run --expect-signal KILL --device software --dir t -- bash -c \
        'echo "$URSCOPE_OBSERVER $URSCOPE_RUN $PPID" >"$0/new"; mv "$0/new" "$0/names"; sleep 0.5; "$@"' "$SHARED" "$@" >out 2>&1
    local code=$?
    touch "$SHARED/done"; wait
    [[ -e $SHARED/done.told ]] || fail "$mode: nothing was told"
    return $code
}
"#;

/// A flood never makes a run clean: the process is named, or it is said that not all could be heard.
#[test]
fn another_user_tells_a_run_nothing() {
    holds(&format!(
        r#"{FORGE}
        forged untraced "$CLEAN"
        judged "a sentence" 0 clean
        forged died "$MISTAKES" idle_consumer_killed
        judged "the end of a process" 1 'freed .* while'
        forged flood bash -c 'URSCOPE_DIR=/dev/null/traces "$CLEAN"; "$CLEAN"'
        judged "a flood" 2 'clean (pid [0-9]*) could not write its trace\|more connections came to the socket of the run'
        [[ ! -s t/process-times.jsonl || $(wc -l <t/process-times.jsonl) -lt 20 ]] || fail "the file has $(wc -l <t/process-times.jsonl) lines"
        "#
    ));
}

/// Root may have programs that become other users. What makes a trace one of the run is its name.
#[test]
fn a_trace_of_another_user_is_none_of_a_run_of_root() {
    holds(
        r#"
        cat >inject <<'END'
            while [[ ! -s $1/begun ]]; do sleep 0.01; done
            name=$(<"$1/begun"); name=${name#urscope-}
            for run in "$name" "${name%-*}"; do
                URSCOPE_RUN=$run URSCOPE_DIR=$1 URSCOPE_FORMAT=binary LD_PRELOAD=$LIBRARY "$URSCOPE" run -q --no-shim --device software -- "$FAULTY"
            done
            touch "$1/done"
END
        mkdir -m 1777 t; chmod 1777 t
        attacker bash inject "$PWD/t" >injected 2>&1 &
        "$URSCOPE" run --device software --dir t -- bash -c 'echo "$URSCOPE_OBSERVER" >t/begun; until [[ -e t/done ]]; do sleep 0.01; done; "$CLEAN"' >out 2>&1
        judged "root" 0 'clean (2 processes'
        wait
        [[ $(ls t/*free_while_open* | wc -l) -ge 2 ]] || fail "$(ls -la t; cat injected)"
        "#,
    );
}
