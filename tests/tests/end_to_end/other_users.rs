//! What another user of the machine can do to a run: nothing but keep it from beginning, with a message.
//!
//! Each script plays both users. A line on its standard error says what went wrong.

use std::path::PathBuf;

use urscope_tests::{Release, apps, run::Ended, users};

fn program(name: &str) -> PathBuf {
    apps::executable(name, Release::R2026_2)
}

#[track_caller]
fn holds(script: &str, program: &str) -> Ended {
    let ended = users::script(script, &[("PROGRAM", &self::program(program)), ("CLEAN", &self::program("clean"))]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    ended
}

/// Programs load libraries from it, so another user who could write to it would run code as the one who runs urscope.
#[test]
fn nobody_else_can_write_to_the_private_directory() {
    let ended = holds(
        r#"
        for mask in 000 002 022; do
            umask $mask
            victim mkdir "$VICTIM_FOLDER/tmp$mask"
            rm -f "$SHARED"/*
            TMPDIR=$VICTIM_FOLDER/tmp$mask victim "$URSCOPE" run --no-shim --device software -- bash -c '
                echo "${LD_LIBRARY_PATH%%:*}" >"$0/place.new"; mv "$0/place.new" "$0/place"
                until [[ -e $0/done ]]; do sleep 0.02; done' "$SHARED" &
            until [[ -e $SHARED/place ]]; do sleep 0.02; done
            place=$(<"$SHARED/place")
            [[ $(stat -c %a:%u "$place") == 700:$VICTIM ]] || fail "umask $mask: $(stat -c %a:%u "$place")"
            attacker test ! -w "$place" || fail "umask $mask: $place can be written"
            attacker ln -s /etc/passwd "$place/libselinux.so.1" 2>/dev/null && fail "umask $mask: a library was added"
            attacker mv "$place" "$place.gone" 2>/dev/null && fail "umask $mask: it was moved"
            [[ $mask == 022 || $place != "$VICTIM_FOLDER"/* ]] || fail "umask $mask: it is where others may write"
            touch "$SHARED/done"
            wait || fail "umask $mask: the run failed"
            [[ ! -e $place ]] || fail "umask $mask: it is still there"
            echo "umask $mask"
        done
        "#,
        "clean",
    );
    assert_eq!(ended.stdout, "umask 000\numask 002\numask 022\n");
}

/// In a user namespace, the real root and every other user have the same number.
#[test]
fn a_user_without_a_number_is_not_taken_for_root() {
    let ended = holds(
        r#"
        # Root cannot make such a namespace without its rights, so the victim is somebody else, who may enter this folder.
        mkdir bin; cp "$URSCOPE" "$LIBRARY" "$(dirname "$URSCOPE")/libze_loader.so" bin/
        URSCOPE=$PWD/bin/urscope VICTIM=2002
        secret=$VICTIM_FOLDER/secret
        echo mine >"$secret"; chown $VICTIM "$secret" "$VICTIM_FOLDER"
        attacker mkdir -m 1777 "$SHARED/tmp"
        attacker ln -s "$secret" "$SHARED/link.json"
        cd "$VICTIM_FOLDER"
        place=$(TMPDIR=$SHARED/tmp victim unshare -Ur "$URSCOPE" run --no-shim --device software -- sh -c 'echo "${LD_LIBRARY_PATH%%:*}"') || fail "$place"
        [[ $place != "$SHARED"/* ]] || fail "libraries are loaded from $place"
        victim unshare -Ur "$URSCOPE" check --output json="$SHARED/link.json" . >out 2>&1
        grep -q 'through a symbolic link of the user' out || fail "$(cat out)"
        [[ $(cat "$secret") == mine ]] || fail "the report was written to another file"
        victim unshare -Ur "$URSCOPE" run --dir "$SHARED/tmp" -- true >out 2>&1
        grep -q 'it belongs to the user' out || fail "$(cat out)"
        victim unshare -Ur sh -c '"$0" check --output json=/dev/stdout . | grep -q verdict' "$URSCOPE" || fail "standard output"
        echo done
        "#,
        "clean",
    );
    assert_eq!(ended.stdout, "done\n");
}

/// A run that is killed cannot remove its directory.
#[test]
fn a_private_directory_that_was_left_behind_is_removed_by_the_next_run() {
    holds(
        r#"
        mkdir -m 700 tmp; chown $VICTIM tmp; export TMPDIR=$PWD/tmp
        (exec setpriv --reuid=$VICTIM --regid=$VICTIM --clear-groups --inh-caps=-all --bounding-set=-all -- "$URSCOPE" run --no-shim --device software -- \
            bash -c 'echo $$ >"$0/new"; mv "$0/new" "$0/pid"; exec sleep 60' "$SHARED") &
        until [[ -e $SHARED/pid ]]; do sleep 0.02; done
        { kill -KILL $!; wait; } 2>/dev/null
        old=$(echo tmp/urscope-*)
        victim "$URSCOPE" run --no-shim --device software -- true
        [[ -d $old ]] || fail "it was removed, although a program of the run still needs it"
        pid=$(<"$SHARED/pid")
        kill -KILL "$pid"
        while [[ -e /proc/$pid/environ && $(cut -d' ' -f3 /proc/$pid/stat) != Z ]]; do sleep 0.02; done
        victim "$URSCOPE" run --no-shim --device software -- true
        [[ -z $(ls -A tmp) ]] || fail "left: $(ls -A tmp)"
        "#,
        "clean",
    );
}

/// All files of a run are private, whatever the mask is.
#[test]
fn directories_and_files_of_a_run_are_private() {
    let ended = holds(
        r#"
        cd "$VICTIM_FOLDER"
        for mask in 000 002 022; do
            umask $mask
            victim mkdir $mask
            (cd $mask; victim "$URSCOPE" run --device software -- "$PROGRAM" >out 2>&1) || fail "$(cat $mask/out)"
            rm $mask/out
            open=$(find $mask -mindepth 1 -perm /077)
            [[ -z $open ]] || fail "umask $mask: $open"
            echo "$(find $mask -type d -name 'clean-1') $(find $mask -type f | wc -l)"
        done
        # What a process makes without the command.
        umask 000
        URSCOPE_DIR=$PWD/alone/deep LD_PRELOAD=$LIBRARY victim "$URSCOPE" run --no-shim --device software -- "$PROGRAM" >/dev/null 2>&1
        [[ $(stat -c %a alone alone/deep | sort -u) == 700 ]] || fail "alone: $(stat -c %a alone alone/deep)"
        "#,
        "clean",
    );
    assert_eq!(
        ended.stdout,
        "000/urscope-traces/clean-1 4\n002/urscope-traces/clean-1 4\n022/urscope-traces/clean-1 4\n"
    );
}

/// The owner of a directory can replace what is in it, even if it is sticky, and the owner of its parent the directory.
#[test]
fn a_directory_that_another_user_can_replace_is_refused() {
    holds(
        r#"
        attacker mkdir -m 1777 "$SHARED/sticky"
        attacker mkdir -m 777 "$SHARED/open"
        victim mkdir "$SHARED/sticky/inside"
        attacker ln -s "$VICTIM_FOLDER" "$SHARED/link"
        attacker mkdir -p "$SHARED/work/urscope-traces"
        chmod 777 "$SHARED/work" "$SHARED/work/urscope-traces"
        refused() {
            "$@" >out 2>&1
            local code=$?
            [[ $code == 2 ]] || fail "$*: exit code $code: $(cat out)"
            grep -q "the directory for the traces, .*the user $ATTACKER" out || fail "$*: $(cat out)"
            [[ ! -e $SHARED/begun && ! -e $SHARED/sticky/new ]] || fail "$*: something was made"
        }
        for folder in sticky open sticky/inside sticky/new link; do
            refused victim "$URSCOPE" run --dir "$SHARED/$folder" -- touch "$SHARED/begun"
        done
        cd "$SHARED/work"
        victim "$URSCOPE" run -- touch "$SHARED/begun" >"$SHARED/out" 2>&1
        [[ $? == 2 && ! -e $SHARED/begun ]] || fail "urscope-traces: $(cat "$SHARED/out")"
        grep -q "urscope-traces, cannot be used: it belongs to the user $ATTACKER" "$SHARED/out" || fail "urscope-traces: $(cat "$SHARED/out")"
        [[ -z $(ls -A urscope-traces) ]] || fail "urscope-traces: $(ls -A urscope-traces)"

        # The library alone: the program goes on without a trace.
        for folder in sticky open sticky/inside; do
            URSCOPE_DIR=$SHARED/$folder LD_PRELOAD=$LIBRARY victim "$URSCOPE" run --no-shim --device software -- \
                "$PROGRAM" >"$SHARED/out" 2>&1 || fail "$folder: $(cat "$SHARED/out")"
            grep -q "cannot write a trace into $SHARED/$folder: .*belongs to the user $ATTACKER" "$SHARED/out" || fail "$folder: $(cat "$SHARED/out")"
            [[ -z $(find "$SHARED/$folder" -name 'urscope-*') ]] || fail "$folder has a trace"
        done

        # A directory of root in which everyone may write is one of those, too.
        victim "$URSCOPE" run --device software --dir "$SHARED" -- "$PROGRAM" >"$VICTIM_FOLDER/out" 2>&1 || fail "$(cat "$VICTIM_FOLDER/out")"
        "#,
        "clean",
    );
}

/// Who owns a directory further above can move the whole away, and back.
#[test]
fn a_run_during_which_a_directory_above_is_moved_is_not_judged() {
    holds(
        r#"
        attacker mkdir -m 1777 "$SHARED/theirs"
        cd "$SHARED/theirs"
        victim "$URSCOPE" run --device software -- sh -c '"$0"; touch "$1/one"; until [ -e "$1/two" ]; do sleep 0.02; done; "$0"; touch "$1/three"
            until [ -e "$1/four" ]; do sleep 0.02; done' "$PROGRAM" "$SHARED" >"$SHARED/out" 2>&1 &
        await() { until [[ -e $SHARED/$1 ]]; do sleep 0.02; done; }
        await one
        attacker mv urscope-traces hidden
        attacker ln -s "$VICTIM_FOLDER" urscope-traces
        touch "$SHARED/two"; await three
        attacker rm urscope-traces
        attacker mv hidden urscope-traces
        touch "$SHARED/four"
        wait $!
        [[ $? == 2 ]] && grep -q 'was moved or replaced' "$SHARED/out" || fail "$(cat "$SHARED/out")"
        "#,
        "clean",
    );
}

/// A path may lead through a link of another user.
#[test]
fn no_link_of_another_user_is_followed_on_the_way() {
    holds(
        r#"
        mkdir "$VICTIM_FOLDER/home"; chown $VICTIM "$VICTIM_FOLDER/home"
        attacker ln -s "$VICTIM_FOLDER/home" "$SHARED/link"
        cd "$VICTIM_FOLDER"
        victim "$URSCOPE" run --device software --dir traces -- "$PROGRAM" >out 2>&1 || fail "$(cat out)"
        for arguments in "run --dir $SHARED/link/traces -- true" "check --output json=$SHARED/link/r.json traces" "merge $SHARED/link/r.json" \
            "check --suppressions $SHARED/link/known traces" "export -o $SHARED/link/e.json traces" "export --format jsonl -o $SHARED/link traces" \
            "--profile $SHARED/link/p check traces"; do
            victim "$URSCOPE" $arguments >out 2>&1
            [[ $? == 2 ]] && grep -q "link of the user $ATTACKER" out || fail "$arguments: $(cat out)"
        done
        [[ -z $(find "$VICTIM_FOLDER/home" -type f) ]] || fail "$(ls -R "$VICTIM_FOLDER/home")"
        # One of our own is followed.
        victim ln -s "$VICTIM_FOLDER/home" "$SHARED/own"
        victim "$URSCOPE" check --output json="$SHARED/own/r.json" traces >out 2>&1
        [[ -s home/r.json ]] || fail "$(cat out)"
        "#,
        "clean",
    );
}

/// What another user put where a run writes is neither written, nor followed, nor waited for, and changes no verdict.
#[test]
fn files_of_another_user_change_nothing() {
    let ended = holds(
        r#"
        secret=$VICTIM_FOLDER/secret
        for kind in link hard-link pipe socket directory device file; do
            for name in process-times.jsonl merged.json urscope-clean-1-1.fxt urscope-clean-1-1.json; do
                folder=$VICTIM_FOLDER/$kind-$name
                victim mkdir -m 777 "$folder"; chmod 777 "$folder"
                echo mine >"$secret"; chown $VICTIM "$secret"; chmod 600 "$secret"
                at=$folder/$name
                case $kind in
                    link) attacker ln -s "$secret" "$at" ;;
                    hard-link) ln "$secret" "$at" ;;
                    pipe) attacker mkfifo -m 666 "$at" ;;
                    socket) python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$at"; chown $ATTACKER "$at" ;;
                    directory) attacker mkdir "$at" ;;
                    # Only the real root can make one, and so can no attacker.
                    device) mknod -m 666 "$at" c 1 5 2>/dev/null || continue ;;
                    file) attacker sh -c 'echo "{}" >"$0"; chmod 666 "$0"' "$at" ;;
                esac
                before=$(stat -c '%F %s %i %Y' "$at")
                victim "$URSCOPE" run --device software --dir "$folder" -- "$PROGRAM" >out 2>&1
                code=$?
                [[ $code == 0 ]] && grep -q 'clean (2 processes' out || fail "$kind $name: exit code $code: $(cat out)"
                [[ $(cat "$secret") == mine ]] || fail "$kind $name: the file that it leads to was written"
                [[ $(stat -c '%F %s %i %Y' "$at") == "$before" ]] || fail "$kind $name: it was changed"
                [[ $name != process-times.jsonl ]] || grep -q 'process-times.jsonl is not used: ' out || fail "$kind: $(cat out)"
                rm -rf "$secret" "$folder"
            done
        done
        echo done
        "#,
        "clean",
    );
    assert_eq!(ended.stdout, "done\n");
}

/// The name of the file by which ranks agree can be known before.
#[test]
fn a_file_of_another_user_keeps_ranks_from_beginning() {
    holds(
        r#"
        folder=$VICTIM_FOLDER/ranks
        victim mkdir -m 777 "$folder"; chmod 777 "$folder"
        # The shell that starts urscope is its launcher.
        for kind in link pipe file; do
            case $kind in
                link) put='ln -s "$secret" "$at"' ;;
                pipe) put='mkfifo -m 666 "$at"' ;;
                file) put='touch "$at"; chmod 666 "$at"' ;;
            esac
            cat >job <<END
            secret=$VICTIM_FOLDER/secret
            at=$folder/.urscope-ranks-7-\$(uname -n | tr -c 'A-Za-z0-9\n' _)-\$\$-\$(printf %x \$(cut -d' ' -f22 /proc/\$\$/stat))
            $put
            chown -h $ATTACKER "\$at"
            PMI_RANK=0 PMI_SIZE=2 SLURM_JOB_ID=7 setpriv --reuid=$VICTIM --regid=$VICTIM --clear-groups --inh-caps=-all \\
                --bounding-set=-all -- "$URSCOPE" run --dir "$folder" -- touch "$SHARED/begun"
            exit \$?
END
            bash job >out 2>&1
            code=$?
            [[ $code == 2 ]] || fail "$kind: exit code $code: $(cat out)"
            [[ ! -e $VICTIM_FOLDER/secret && ! -e $SHARED/begun ]] || fail "$kind: something was made"
        done
        "#,
        "clean",
    );
}

/// Where everybody may write, the traces of others are theirs to judge.
#[test]
fn a_check_judges_the_traces_of_the_user_alone() {
    holds(
        r#"
        victim "$URSCOPE" run --device software --dir "$SHARED" -- "$CLEAN" >out 2>&1 || fail "$(cat out)"
        attacker "$URSCOPE" run --device software --dir "$SHARED" -- "$PROGRAM" >out 2>&1
        [[ $? == 1 ]] || fail "$(cat out)"
        victim "$URSCOPE" check "$SHARED" >out 2>&1 || fail "exit code $?: $(cat out)"
        tr -s '\n ' ' ' <out | grep -q "free_while_open.* was ignored: it belongs to the user $ATTACKER" || fail "$(cat out)"
        attacker "$URSCOPE" check "$SHARED" >out 2>&1
        [[ $? == 1 ]] || fail "$(cat out)"
        "#,
        "free_while_open",
    );
}

/// Every user can read the command line of a browser, and whoever knows the address of the page can read the page.
#[test]
fn the_command_line_of_the_browser_gives_the_page_to_nobody() {
    holds(
        r#"
        cd "$VICTIM_FOLDER"
        victim "$URSCOPE" run --device software --dir traces -- "$PROGRAM" >out 2>&1 || fail "$(cat out)"
        printf '#!/bin/sh\ncat "$1" >"%s/page"; echo "$@" >"%s/new"; mv "%s/new" "%s/opened"\n' "$PWD" "$SHARED" "$SHARED" "$SHARED" >browser
        chmod 755 browser
        (DISPLAY=:0 BROWSER=$PWD/browser exec setpriv --reuid=$VICTIM --regid=$VICTIM --groups=3000 --inh-caps=-all --bounding-set=-all -- \
            "$URSCOPE" view --port 0 traces >said 2>&1) &
        until [[ -e $SHARED/opened ]]; do sleep 0.02; done
        words=$(<"$SHARED/opened") address=$(head -1 said)
        [[ $address == http://127.0.0.1:*/?*/ ]] || fail "no address: $(cat said)"
        [[ -f $words ]] || fail "the command line: $words"
        attacker cat "$words" 2>/dev/null && fail "another user can read $words"
        grep -qF "url=$address" page || fail "$address is not in $(cat page)"
        kill -TERM $!
        wait $! || fail "$(cat said)"
        [[ ! -e $words ]] || fail "$words is still there"
        "#,
        "clean",
    );
}

/// Whose configuration is obeyed decides about the verdict.
#[test]
fn the_configuration_of_another_user_is_not_obeyed() {
    holds(
        r#"
        cd "$VICTIM_FOLDER"
        victim "$URSCOPE" run --device software --dir traces -- "$PROGRAM" >/dev/null 2>&1
        [[ $? == 1 ]] || fail "it has a finding"
        chmod 1777 "$SHARED"
        check() {
            (cd "$SHARED/$1"; victim "$URSCOPE" check "$VICTIM_FOLDER/traces") >"$SHARED/out" 2>&1
            local code=$?
            [[ $code == "$2" ]] || fail "$3: exit code $code: $(cat "$SHARED/out")"
            grep -q "$4" "$SHARED/out" || fail "$3: $(cat "$SHARED/out")"
        }
        victim mkdir "$SHARED/sub"
        attacker sh -c 'printf "suppressions = \"known\"\nfail-on = \"never\"\n" >"$0/urscope.toml"; echo "*:*" >"$0/known"' "$SHARED"
        check sub 1 "a file of another user" "urscope.toml is not obeyed: it belongs to the user $ATTACKER"
        attacker sh -c 'printf "suppressions = \"/dev/zero\"\n" >"$0/urscope.toml"' "$SHARED"
        check sub 1 "an endless file" "is not obeyed"
        attacker mkfifo -m 666 "$SHARED/pipe"
        attacker sh -c 'printf "suppressions = \"pipe\"\n" >"$0/urscope.toml"' "$SHARED"
        check sub 1 "a pipe" "is not obeyed"
        rm "$SHARED/urscope.toml"

        # In a directory of another user, a file of ours can be another one by the next moment.
        attacker mkdir -m 777 "$SHARED/theirs"; chmod 777 "$SHARED/theirs"
        victim sh -c 'printf "fail-on = \"never\"\n" >"$0/urscope.toml"' "$SHARED/theirs"
        check theirs 1 "a directory of another user" "is not obeyed: its directory belongs to the user $ATTACKER"

        # What our own one names can be theirs where they may write.
        victim mkdir -m 777 "$SHARED/ours"; chmod 777 "$SHARED/ours"
        victim sh -c 'printf "suppressions = \"known\"\n" >"$0/urscope.toml"' "$SHARED/ours"
        attacker sh -c 'echo "*:*" >"$0/known"' "$SHARED/ours"
        check ours 2 "their suppressions" "known is not obeyed: it belongs to the user $ATTACKER"

        # One of our own is obeyed.
        victim sh -c 'printf "fail-on = \"never\"\n" >"$0/urscope.toml"' "$SHARED/sub"
        check sub 0 "our own" "adds to the options"
        "#,
        "free_while_open",
    );
}

/// Reports are asked for by name, so they may go where others may write.
#[test]
fn a_report_is_not_written_through_what_another_user_put_there() {
    holds(
        r#"
        secret=$VICTIM_FOLDER/secret
        echo mine >"$secret"; chown $VICTIM "$secret"
        attacker ln -s "$secret" "$SHARED/link.json"
        attacker touch "$SHARED/file.json"; chmod 666 "$SHARED/file.json"
        attacker mkfifo -m 666 "$SHARED/pipe.json"
        ln "$secret" "$SHARED/hard.json"
        cd "$VICTIM_FOLDER"
        for file in link file pipe hard; do
            victim "$URSCOPE" check --output json="$SHARED/$file.json" . >out 2>&1
            code=$?
            [[ $code == 2 ]] && grep -q "$file.json cannot be written: it" out || fail "$file: exit code $code: $(cat out)"
        done
        [[ $(cat "$secret") == mine ]] || fail "the report was written to another file"
        [[ ! -s $SHARED/file.json ]] || fail "another user gets the report"
        victim "$URSCOPE" check --output json="$SHARED/own.json" . >out 2>&1
        [[ -s $SHARED/own.json ]] || fail "$(cat out)"
        "#,
        "clean",
    );
}
