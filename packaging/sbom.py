#!/usr/bin/env python3
"""The parts of which a build of fkge is made, as CycloneDX 1.5 in JSON (a software bill of materials).

  sbom.py FKGE [VERSION]       writes it to standard output
  sbom.py --check FILE FKGE    is FILE one, with every library that FKGE names?

Parts are the shared libraries that the program loads, those that it names itself and those that these
need, with the Debian package and version that they come from.  Nothing is copied into the program."""
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid

KINDS = {"application", "library", "framework", "container", "operating-system", "firmware", "file"}


def said(*words):
    return subprocess.run(words, capture_output=True, text=True).stdout


def needed(path):
    """What the file names itself: ["libuv.so.1", ...]."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said("readelf", "-d", path))


def loaded(path):
    """What the loader finds, by name; and the loader."""
    text = said("ldd", path)
    found = re.findall(r"^\s*(\S+) => (\S+) \(", text, re.M) + [(at, at) for at in re.findall(r"^\s*(/\S+) \(", text, re.M)]
    return {os.path.basename(name): os.path.realpath(at) for name, at in found}


def packages_of(paths):
    """{path: (package, version, architecture)} of what comes from a package of Debian."""
    forms = {form: p for p in paths for form in (p, p.replace("/usr/lib", "/lib", 1))}
    owners = {}
    for line in said("dpkg-query", "-S", *forms).split("\n"):
        found = re.fullmatch(r"([a-z0-9.+-]+)(?::(\w+))?: (/\S+)", line)
        if found and found.group(3) in forms:
            owners[forms[found.group(3)]] = found.group(1)
    shown = said("dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture}\\n", *sorted(set(owners.values())))
    fields = {line.split()[0]: tuple(line.split()) for line in shown.split("\n") if line}
    return {p: fields[o] for p, o in owners.items() if o in fields}


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def component(name, path, found):
    part = {"type": "library", "bom-ref": name, "name": name, "version": "unknown",
            "hashes": [{"alg": "SHA-256", "content": digest(path)}]}
    if found:
        package, version, architecture = found
        part["version"] = version
        part["purl"] = f"pkg:deb/debian/{package}@{version.replace(':', '%3A').replace('+', '%2B')}?arch={architecture}"
    return part


def make(fkge, version):
    libraries = loaded(fkge)
    packages = packages_of(libraries.values())
    parts = [component(n, p, packages.get(p)) for n, p in sorted(libraries.items())]
    own = {"type": "application", "bom-ref": "fkge", "name": "fkge", "version": version,
           "licenses": [{"license": {"id": "Apache-2.0"}}],
           "hashes": [{"alg": "SHA-256", "content": digest(fkge)}]}
    links = [{"ref": "fkge", "dependsOn": sorted(n for n in needed(fkge) if n in libraries)}]
    links += [{"ref": n, "dependsOn": sorted(m for m in needed(p) if m in libraries)} for n, p in sorted(libraries.items())]
    bom = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": own},
           "components": parts, "dependencies": links}
    # the same parts, the same number
    bom["serialNumber"] = "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(bom, sort_keys=True)))
    return bom


def faults(bom, fkge):
    """What CycloneDX 1.5 wants of the fields that are here, and of the program every library."""
    own = bom["metadata"]["component"]
    parts = bom["components"]
    refs = [p["bom-ref"] for p in parts + [own]]
    yield from ([] if (bom["bomFormat"], bom["specVersion"], bom["version"]) == ("CycloneDX", "1.5", 1) else ["head"])
    if not re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bom["serialNumber"]):
        yield "serialNumber"
    if len(set(refs)) != len(refs):
        yield "a bom-ref stands twice"
    for p in parts + [own]:
        if p["type"] not in KINDS or not p["name"] or not p["version"]:
            yield f"{p['bom-ref']}: type, name or version"
        if not all(h["alg"] == "SHA-256" and re.fullmatch("[0-9a-f]{64}", h["content"]) for h in p["hashes"]):
            yield f"{p['bom-ref']}: hashes"
        if "purl" in p and not re.fullmatch(r"pkg:deb/debian/[a-z0-9.+-]+@[\w.~%-]+\?arch=\w+", p["purl"]):
            yield f"{p['bom-ref']}: purl {p['purl']}"
    for d in bom["dependencies"]:
        for r in [d["ref"]] + d["dependsOn"]:
            if r not in refs:
                yield f"dependencies name {r}, which is no part"
    for n in needed(fkge):
        if n not in refs:
            yield f"{n}, which the program names, is no part"
    if own["hashes"][0]["content"] != digest(fkge):
        yield "it is of another program"


def main():
    if sys.argv[1] == "--check":
        with open(sys.argv[2], encoding="utf-8") as f:
            found = list(faults(json.load(f), sys.argv[3]))
        print("\n".join(found), file=sys.stderr)
        return bool(found)
    fkge = sys.argv[1]
    version = sys.argv[2] if len(sys.argv) > 2 else said(fkge, "version").split()[1]
    json.dump(make(fkge, version), sys.stdout, indent=1)
    print()
    return 0


sys.exit(main())
