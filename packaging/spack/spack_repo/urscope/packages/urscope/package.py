"""Builds urscope with Spack 1.0 or later, from the checkout that this file is in.

    spack repo add CHECKOUT/packaging/spack/spack_repo/urscope
    spack install urscope
"""

from pathlib import Path

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Urscope(Package):
    """Finds mistakes in how programs share GPU memory and events between processes."""

    git = Path(__file__).resolve().parents[6].as_uri()

    license("Apache-2.0 OR MIT")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("python@3.10:", type=("build", "run"))

    requires("platform=linux", msg="urscope runs on Linux only")
    requires("target=x86_64:", msg="urscope runs on x86-64 only")

    def install(self, spec, prefix):
        crates = ("urscope-command", "urscope-preload", "urscope-device-loader", "urscope-device-cuda", "urscope-python")
        packages = [word for crate in crates for word in ("--package", crate)]
        which("cargo", required=True)("build", "--release", "--locked", "--jobs", str(make_jobs), *packages)
        which("python3", required=True)("scripts/packages/stage_tree.py", "target/release", "tree")
        install_tree("tree", prefix)

    @run_after("install")
    def check_command(self):
        Executable(self.prefix.bin.urscope)("--version")

    def setup_run_environment(self, env):
        env.prepend_path("PYTHONPATH", self.prefix.lib.urscope.python)
