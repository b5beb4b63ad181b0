#!/usr/bin/env python3
"""Fetches packages of Debian 12, pinned by their hashes, and unpacks what the tests need of them into a folder.

    scripts/fetch-debian.py loader FOLDER     a real Level Zero loader and its headers
    scripts/fetch-debian.py modules FOLDER    Environment Modules and Lmod, with what they need
    scripts/fetch-debian.py neighbours FOLDER libraries that are preloaded beside urscope, with what they need
    scripts/fetch-debian.py peers FOLDER      uftrace and LTTng, with what they need
    scripts/fetch-debian.py slurm FOLDER      Slurm and MUNGE, with what they need

They run on every system with glibc 2.35 or later, without being installed. The tests use the software device as a driver under the loader,
load urscope's modulefiles, and run programs with each of the neighbours. scripts/slurm runs Slurm, and `scripts/bench overhead` measures
with the peers.
"""

import hashlib
import io
import pathlib
import re
import sys
import tarfile
import urllib.request

ARCHIVE = "http://deb.debian.org/debian/pool/main/"
LOADER = {
    "l/level-zero/libze1_1.8.12-1_amd64.deb": "403b3e3821a3e2dfdc8e6392300350943de2f66d1ada1dc551f8d5ac175ef944",
    "l/level-zero/libze-dev_1.8.12-1_amd64.deb": "04982092f99d0815fad8352c785ae5e0a91501aab358745b4cd9a7ce78b54606",
}
MODULES = {
    "m/modules/environment-modules_5.2.0-1_amd64.deb": "eb4bb6914be2c197fe2b16838250a9c0b71e30e345ec4d5418fea437de73ee0e",
    "t/tcl8.6/tcl8.6_8.6.13+dfsg-2_amd64.deb": "4d539bdd459ea9fd5be25bf46c3c928ae5eb9cfdb5a1bf7ca25cacc596327d9d",
    "t/tcl8.6/libtcl8.6_8.6.13+dfsg-2_amd64.deb": "976c4235b816635e1756016f3adbabb634e8b97a9f6b97cf901be099e4fd2487",
    "l/lmod/lmod_8.6.19-1_amd64.deb": "252456f7f9d289c8c15290b89c5fb3cc9cec702f572dc6ae8dc7818fc1df2d2e",
    "l/lua5.3/lua5.3_5.3.6-2_amd64.deb": "ffc59fd20f6f61c211e2fcfdd1c6421287b89ddc4e439d4a2870cbd93a34279f",
    "l/lua-filesystem/lua-filesystem_1.8.0-3_amd64.deb": "679309dc0d8fe34bd4fc7a15b742d7ebb3a26ac3ca2d3527026cda3bc7480fc3",
    "l/lua-json/lua-json_1.3.4-2_all.deb": "8189a99f6d27eceb602bc53fbbd770676b0682cbfd9e4a7bfb9cfbed279b7663",
    "l/lua-lpeg/lua-lpeg_1.0.2-2_amd64.deb": "429524c005adaa110a6381b77469b7c0047fe085e86929af3b2406d48e41d907",
    "l/lua-posix/lua-posix_33.4.0-3+b1_amd64.deb": "7d306f48a56c7749a7a9badb1c83de08a2b685963130979d6fd965f9e41f0b22",
    "l/lua-term/lua-term_0.07-1+b1_amd64.deb": "19065aea8c01d07ad36ff9059dcc77db82c28de4d00921daea4245e74fc98bd5",
}
SLURM = {
    "h/hwloc/libhwloc15_2.9.0-1_amd64.deb": "4e7194b5d9adbb1a7d11a9501a4be4a4fa22876b69c73b7998056f552962c0e4",
    "libe/libevent/libevent-core-2.1-7_2.1.12-stable-8_amd64.deb": "4cebf4a24fb222ddbc5569df9960c5ff2da8b7ed71a02e13c79a59dcaf3b518a",
    "libe/libevent/libevent-pthreads-2.1-7_2.1.12-stable-8_amd64.deb": "798bbe7f492e176c287fc211e4a670eb64b10952720a036927357980d9a4a4b0",
    "m/munge/libmunge2_0.5.15-2+deb12u1_amd64.deb": "533a38220c7f2a38a1130f5f80033d1a07723880fa352299b22a10ba99ce826e",
    "m/munge/munge_0.5.15-2+deb12u1_amd64.deb": "a5d4c6eb1229dda19bb37040872edc275f581c8d8d820df4bc45cb1f82955334",
    "p/pmix/libpmix2_4.2.2-1+deb12u1_amd64.deb": "fe19bbea5a23897618ef4c54b097366a834bd6c7157276ef4375d053ac2ecd1e",
    "s/slurm-wlm/libpmi0_22.05.8-4+deb12u3_amd64.deb": "dc2b73ee0a891e883a0860c21b477fe81c527c8e5e1645f71cf5d0ebc40d7cef",
    "s/slurm-wlm/libpmi2-0_22.05.8-4+deb12u3_amd64.deb": "eaa1674ce95bc544d1e6f375b014237784834186952d2916535aefd0a4919b60",
    "s/slurm-wlm/slurm-client_22.05.8-4+deb12u3_amd64.deb": "da1f62530f6bd2ded29b1db38db6875d544952c6ce02505ffc3e812506dce856",
    "s/slurm-wlm/slurm-wlm-basic-plugins_22.05.8-4+deb12u3_amd64.deb": "7aa42186e5a3ca78d14832514ed6ab3499ca95d5d7617a03a1dac86bda109a8e",
    "s/slurm-wlm/slurmctld_22.05.8-4+deb12u3_amd64.deb": "52322632ea071bcbdbed2f3dd16462760c9444198bc91bba507e6bf97ae8c2b2",
    "s/slurm-wlm/slurmd_22.05.8-4+deb12u3_amd64.deb": "c88bf805e9770505eb08c78cbf09e9f09ce7eb2bd034f05f89965a2d658def0d",
}

LTTNG_UST = {
    "n/numactl/libnuma1_2.0.16-1_amd64.deb": "639e1ab6bd66ead40db8a22c332d7199679fa22db261cac34444eb8eb4c17dda",
    "u/ust/liblttng-ust-common1_2.13.5-1_amd64.deb": "c59d528fb1bf7c95863a3d8d41ccf1a752a6173c3654a1aefe6fa9e35cfda19a",
    "u/ust/liblttng-ust1_2.13.5-1_amd64.deb": "dba9a83f296757dc6091f11da01ac7315ca93168bb7a910ed738f7f03969a11b",
}
NEIGHBOURS = {
    "j/jemalloc/libjemalloc2_5.3.0-1_amd64.deb": "a4117c23c5c8acf6c9678a6cb086f000b79476369da7efe8a78a70826956ad3d",
    "g/google-perftools/libgoogle-perftools4_2.10-1_amd64.deb": "492736bd488d85452ae3059dfb22f50b1d6eb465d835966809dd6ce88014f80d",
    "m/mimalloc/libmimalloc2.0_2.0.9+ds-2_amd64.deb": "a20035605a532be3186f0f48607c7106fe2a5551066c29de663c965692c446c4",
    "libe/libeatmydata/libeatmydata1_130-2+b1_amd64.deb": "d6dd1dce44f4e0a81d30a2018f061b39067521fefde31408c3241a5948991499",
    "f/faketime/libfaketime_0.9.10-2.1_amd64.deb": "b09481e7690680966005330c3f907bba4b5eefc35e1faaea4783cc55655d1150",
    "h/heaptrack/heaptrack_1.4.0-2_amd64.deb": "2ff6dbf3b992ef31bf8213a0efd3a9583ea9540212648eecf599c49b975da212",
    "h/heaptrack/libheaptrack_1.4.0-2_amd64.deb": "52a4de1d0aa325908e534cccb78c5fa9dd4f817b7347e5e15095ce734aa01d20",
    "e/electric-fence/electric-fence_2.2.6+b1_amd64.deb": "4119f021ab9267f2a479d03cab24211a7f2b5918328d010187ed914a25b6d122",
    "libu/libunwind/libunwind8_1.6.2-3_amd64.deb": "7b297868682836e4c87be349f17e4a56bc287586e3576503e84a5cb5485ce925",
    **LTTNG_UST,
}
PEERS = {
    "c/capstone/libcapstone4_4.0.2-5_amd64.deb": "41277f0388184f6e3b9fc02eda3184afbc999314b25b77ed75e8049428bdfe5e",
    "e/elfutils/libdw1_0.188-2.1_amd64.deb": "ffd7b1bad982ad1afd9c2b75ab2edd18e229508df731a8f4d8443f093a91442f",
    "e/elfutils/libelf1_0.188-2.1_amd64.deb": "619add379c606b3ac6c1a175853b918e6939598a83d8ebadf3bdfd50d10b3c8c",
    "i/icu/libicu72_72.1-3+deb12u1_amd64.deb": "f7f6f99c6d7b025914df2447fc93e11d22c44c0c8bdd8b6f36691c9e7ddcef88",
    "k/kmod/libkmod2_30+20221128-1_amd64.deb": "af63bbbfc15fbd1f254b15c393b3b95b18b18cc81348fc1b4f1c9c34b4d672d7",
    "l/ltt-control/liblttng-ctl0_2.13.9-1+deb12u1_amd64.deb": "413b6eb65c1c09d6d2631286cdd7026e6adac6b77b7a93e47f08ebb5e4578ea2",
    "l/ltt-control/lttng-tools_2.13.9-1+deb12u1_amd64.deb": "75528e3c1e467b6858929c285dbff0c68289ab311a0aec72dcd7ff8690e2ac0e",
    "libu/liburcu/liburcu-dev_0.13.2-1_amd64.deb": "101ffc33a49baf4cb32e61e5c048d3dcced2746664205f80d298d960b14ab4cc",
    "libu/liburcu/liburcu8_0.13.2-1_amd64.deb": "8647049698200fb5e20a130a09059b51878bb98643a120c7b0c6cbfd3f9b42dd",
    "libx/libxml2/libxml2_2.9.14+dfsg-1.3~deb12u6_amd64.deb": "4460e39dda10a815881374217cde08474747cfa018358cd8612c14b390eff53b",
    "n/ncurses/libncursesw6_6.4-4_amd64.deb": "98fa7a53dc565a38b65fb70422ad08001bf5361d8fbc74255280c329996a6bec",
    "p/popt/libpopt0_1.19+dfsg-1_amd64.deb": "6f94b488255acd996254f775c77ff3956557c61f860a3c9caeaf65457554194f",
    "u/uftrace/uftrace_0.13-1_amd64.deb": "9805ca463f1b3293fcace84331779fff0ddfc2d947cd5f1badb186c14750a4da",
    "u/ust/liblttng-ust-ctl5_2.13.5-1_amd64.deb": "a05474304e8cdf9470e880614d1b9fa1eb6474360a23aad45ed73014323bd8a1",
    "u/ust/liblttng-ust-dev_2.13.5-1_amd64.deb": "e60469ea25b80dc273fce31b1cc30424a7c1df26abd3853aa22ecc695754df19",
    **LTTNG_UST,
}


def members(package: bytes):
    """The files of an archive of ar(1), with their names: a header of 60 bytes each, and an even number of bytes."""
    at = len(b"!<arch>\n")
    while at < len(package):
        name, size = package[at : at + 16].decode().strip().rstrip("/"), int(package[at + 48 : at + 58])
        yield name, package[at + 60 : at + 60 + size]
        at += 60 + size + size % 2


def fetch(name: str, expected: str) -> bytes:
    """A package of the archive."""
    package = urllib.request.urlopen(ARCHIVE + name, timeout=60).read()
    found = hashlib.sha256(package).hexdigest()
    if found != expected:
        sys.exit(f"scripts/fetch-debian.py: {ARCHIVE}{name} has the SHA-256 {found}, expected {expected}")
    return package


def contents(packages):
    """The files and links of packages: pairs of an entry and the content, which a link has not."""
    for name, expected in packages.items():
        data = dict(members(fetch(name, expected)))["data.tar.xz"]
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:xz") as files:
            for entry in files:
                if entry.isfile():
                    yield entry, files.extractfile(entry).read()
                elif entry.issym():
                    yield entry, None


def loader(folder: pathlib.Path) -> None:
    for entry, content in contents(LOADER):
        wanted = entry.name.startswith(("./usr/lib/x86_64-linux-gnu/lib", "./usr/include/level_zero/ze_"))
        if wanted and content is not None:
            # The tests load a library by the name that its versions share, which is a link in the package.
            short = ".".join(pathlib.PurePath(entry.name).name.split(".")[:3])
            (folder / short).write_bytes(content)


def unpack(packages, folder: pathlib.Path, changed=lambda entry, content: content) -> None:
    """What packages have below /usr, with a function that changes files."""
    for entry, content in contents(packages):
        # In an old package, a library may be in a folder that is a link today.
        entry.name = entry.name.replace("./lib/x86_64-linux-gnu/", "./usr/lib/x86_64-linux-gnu/")
        path = folder / entry.name
        if not entry.name.startswith("./usr/") or entry.name.startswith(("./usr/share/doc/", "./usr/share/man/")):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if content is None:
            path.symlink_to(entry.linkname)
            continue
        path.write_bytes(changed(entry, content))
        path.chmod(entry.mode)


def modules(folder: pathlib.Path) -> None:
    def changed(entry, content):
        if entry.name.endswith("/libexec/lmod"):
            # It looks for its parts where it was installed. With "@" it looks where LUA_PATH and LUA_CPATH say.
            content, count = re.subn(rb'^(local sys_lua_c?path = )".*"$', rb'\1"@"', content, flags=re.MULTILINE)
            assert count == 2, "lmod has another form"
        return content

    unpack(MODULES, folder, changed)


def slurm(folder: pathlib.Path) -> None:
    unpack(SLURM, folder)
    # Links that the packages make when they are installed, and the name by which Slurm looks for PMIx.
    links = {f"usr/sbin/{program}": f"{program}-wlm" for program in ("slurmctld", "slurmd", "slurmstepd")}
    links["usr/lib/x86_64-linux-gnu/pmix2/lib/libpmix.so"] = "libpmix.so.2"
    for name, target in links.items():
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def main() -> None:
    what, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    whole = {"neighbours": NEIGHBOURS, "peers": PEERS}
    if what in whole:
        unpack(whole[what], folder)
    else:
        {"loader": loader, "modules": modules, "slurm": slurm}[what](folder)


main()
