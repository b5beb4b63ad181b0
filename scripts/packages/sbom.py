#!/usr/bin/env python3
"""Prints what the programs of a package are linked from, as a software bill of materials in CycloneDX 1.6 (ECMA-424).

    python3 scripts/packages/sbom.py

The components are the crates that cargo names, with the hashes of their packages, and Rust's standard library. The same commit gives the
same text.
"""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def third_party():
    """The module beside this one, whose name is no word of Python."""
    spec = importlib.util.spec_from_file_location("third_party", ROOT / "scripts/packages/third-party.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def component(name, version, licence, url, **more):
    found = {"type": "library", "name": name, "version": version, **more}
    if licence:
        found["licenses"] = [{"expression": licence.replace("/", " OR ")}]
    if url:
        found["externalReferences"] = [{"type": "vcs", "url": url}]
    return found


def bill():
    linked = third_party()
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    hashes = {(package["name"], package["version"]): package.get("checksum") for package in locked}
    rust = re.search(r"rustc (\S+)", linked.run("rustc", "--version"))[1]
    components = [component("rust-std", rust, "MIT OR Apache-2.0", "https://github.com/rust-lang/rust")]
    for crate in linked.linked_crates():
        name, version = crate["name"], crate["version"]
        purl = f"pkg:cargo/{name}@{version}"
        known = hashes.get((name, version))
        more = {"hashes": [{"alg": "SHA-256", "content": known}]} if known else {}
        components.append(component(name, version, crate["license"], crate["repository"], purl=purl, **{"bom-ref": purl}, **more))
    program = component("urscope", manifest["version"], manifest["license"], manifest.get("repository"))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**program, "type": "application"}},
        "components": components,
    }


if __name__ == "__main__":
    print(json.dumps(bill(), indent=2))
