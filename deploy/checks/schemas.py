"""Checks manifests against the schemas of every Kubernetes from 1.28 on, strictly.

Takes directories of YAML, prints what is wrong. Objects of the Prometheus operator have no schema here: the Go checks decode
those. Needs the packages of requirements.txt.
"""

import functools
import json
import pathlib
import sys

import kubernetes_validate
import yaml
from kubernetes_validate import utils

OLDEST = (1, 28)
WITHOUT_SCHEMA = "monitoring.coreos.com/v1"

# A schema is read once, not once an object.
utils.schema_contents = functools.cache(utils.schema_contents)
utils.all_versions = functools.cache(utils.all_versions)


def versions():
    """The releases to check for, oldest first."""
    known = {tuple(map(int, version.split(".")[:2])) for version in utils.all_versions()}
    return [f"{major}.{minor}" for major, minor in sorted(known) if (major, minor) >= OLDEST]


def objects(directories):
    """Each different object once, with the file it was first seen in."""
    seen = {}
    for directory in directories:
        for path in sorted(pathlib.Path(directory).rglob("*.yaml")):
            for found in yaml.safe_load_all(path.read_text()):
                if found and found["apiVersion"] != WITHOUT_SCHEMA and found["kind"] != "Kustomization":
                    seen.setdefault(json.dumps(found, sort_keys=True), (path, found))
    return seen.values()


def fault(found, version):
    """What a release has against an object; None if nothing."""
    try:
        utils.validate(found, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError as error:
        return error.message
    return None


def main(directories):
    """Prints the faults and the number of checks; gives the exit code."""
    broken = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"prots": []}}
    releases = versions()
    if any(fault(broken, version) is None for version in releases):
        print("an unknown field is not found: nothing is checked strictly")
        return 1
    checks = faults = 0
    for path, found in objects(directories):
        for version in releases:
            checks += 1
            what = fault(found, version)
            if what:
                faults += 1
                print(f"{path}: {found['kind']} {found['metadata']['name']}, Kubernetes {version}: {what}")
    print(f"{checks} checks of objects against Kubernetes {releases[0]} to {releases[-1]}: {faults} faults")
    return 0 if checks >= 100 and not faults else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
