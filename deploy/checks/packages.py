"""Checks the packages of a directory: what is in them, and that it installs, starts, reloads, and goes away.

Takes the directory that `cargo xtask package` filled. Prints each check; exit code 1 if one fails. Installs into roots of
its own, never into this system. Needs the packages of requirements.txt, dpkg, and root for what needs root; a check
that cannot run is named.
"""

import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

import rpmfile

# Every file, with its mode. Documents are listed apart, for they differ between the packages.
FILES = {
    "usr/bin/tailrace": 0o755,
    "usr/lib/systemd/system/tailrace.service": 0o644,
    "usr/lib/sysusers.d/tailrace.conf": 0o644,
    "etc/tailrace/tailrace.yaml": 0o644,
    "etc/default/tailrace": 0o600,
    "usr/share/man/man1/tailrace.1.gz": 0o644,
    "usr/share/bash-completion/completions/tailrace": 0o644,
    "usr/share/fish/vendor_completions.d/tailrace.fish": 0o644,
    "usr/share/doc/tailrace/CHANGELOG.md": 0o644,
    "usr/share/doc/tailrace/tailrace.cdx.json": 0o644,
    "usr/share/doc/tailrace/tailrace.example.yaml": 0o644,
    "usr/share/doc/tailrace/tailrace.schema.json": 0o644,
}
DEB_FILES = {"usr/share/zsh/vendor-completions/_tailrace": 0o644, "usr/share/doc/tailrace/copyright": 0o644}
RPM_FILES = {"usr/share/zsh/site-functions/_tailrace": 0o644, "usr/share/licenses/tailrace/LICENSE": 0o644}
CONFIGS = ["/etc/default/tailrace", "/etc/tailrace/tailrace.yaml"]
SECONDS_MAX = 60


class Fault(Exception):
    """What is wrong with a package."""


def expect(condition, message):
    """Raises unless the condition holds."""
    if not condition:
        raise Fault(message)


def compare(name, have, want):
    """Compares files and their modes; man pages beyond the first are welcome."""
    have = {path: mode for path, mode in have.items() if not re.fullmatch(r"usr/share/man/man1/tailrace-.*\.1\.gz", path)}
    missing, extra = sorted(set(want) - set(have)), sorted(set(have) - set(want))
    expect(not missing and not extra, f"{name}: missing {missing}, unexpected {extra}")
    modes = {path: (oct(have[path]), oct(want[path])) for path in want if have[path] != want[path]}
    expect(not modes, f"{name}: modes {modes}")


def one(directory, pattern):
    """The one file of a pattern."""
    found = sorted(directory.glob(pattern))
    expect(len(found) == 1, f"{pattern}: {len(found)} files in {directory}")
    return found[0]


def check_sums(directory):
    """SHA256SUMS names every file, with its sum."""
    lines = (directory / "SHA256SUMS").read_text().splitlines()
    sums = dict(reversed(line.split("  ", 1)) for line in lines)
    files = {path.name for path in directory.iterdir() if path.is_file() and path.name != "SHA256SUMS"}
    expect(set(sums) == files, f"SHA256SUMS names {sorted(sums)}, there are {sorted(files)}")
    for name, wanted in sums.items():
        have = hashlib.sha256((directory / name).read_bytes()).hexdigest()
        expect(have == wanted, f"{name}: the sum is {have}")


def check_deb(directory, root):
    """The .deb holds what it should; it is unpacked into the root."""
    package = one(directory, "*.deb")
    subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
    have = {}
    for path in root.rglob("*"):
        if path.is_file():
            have[str(path.relative_to(root))] = stat.S_IMODE(path.stat().st_mode)
    compare(package.name, have, FILES | DEB_FILES)
    control = pathlib.Path(tempfile.mkdtemp(dir=root.parent))
    subprocess.run(["dpkg-deb", "--control", package, control], check=True)
    conffiles = sorted((control / "conffiles").read_text().split())
    expect(conffiles == CONFIGS, f"{package.name}: conffiles are {conffiles}")
    fields = subprocess.run(["dpkg-deb", "--field", package], check=True, capture_output=True, text=True).stdout
    expect("Depends:" not in fields, f"{package.name}: a static binary depends on nothing\n{fields}")


def check_rpm(directory):
    """The .rpm holds what it should, and its binary is the .deb's."""
    package = one(directory, "*.rpm")
    with rpmfile.open(str(package)) as rpm:
        headers = rpm.headers
        names = [member.name.lstrip("./") for member in rpm.getmembers()]
        modes = dict(zip(names, (stat.S_IMODE(mode & 0xFFFF) for mode in headers["filemodes"])))
        compare(package.name, modes, FILES | RPM_FILES)
        flags = dict(zip(names, headers["fileflags"]))
        # RPMFILE_CONFIG and RPMFILE_NOREPLACE.
        configs = sorted(f"/{name}" for name, flag in flags.items() if flag & 1 and flag & 16)
        expect(configs == CONFIGS, f"{package.name}: config files are {configs}")
        return rpm.extractfile(next(m for m in rpm.getmembers() if m.name.endswith("bin/tailrace"))).read()


def check_tar(directory, binary):
    """The .tar.gz has one directory, with the same binary."""
    package = one(directory, "*.tar.gz")
    with tarfile.open(package) as archive:
        names = archive.getnames()
        tops = {name.split("/")[0] for name in names}
        expect(tops == {package.name.removesuffix(".tar.gz")}, f"{package.name}: holds {tops}")
        top = tops.pop()
        for name in ["tailrace", "LICENSE", "CHANGELOG.md", "tailrace.yaml", "tailrace.service", "man/tailrace.1",
                     "completions/tailrace.bash", "tailrace.cdx.json"]:
            expect(f"{top}/{name}" in names, f"{package.name}: lacks {name}")
        expect(archive.extractfile(f"{top}/tailrace").read() == binary, f"{package.name}: another binary")


def check_sbom(root):
    """The bill of materials names the agent, and what it is made of with versions and licenses."""
    bill = json.loads((root / "usr/share/doc/tailrace/tailrace.cdx.json").read_text())
    expect(bill["bomFormat"] == "CycloneDX", "the bill of materials is no CycloneDX")
    parts = bill["components"]
    names = {part["name"] for part in parts}
    expect({"datafusion", "arrow", "tokio"} <= names, f"the bill of materials names {len(names)} crates, not DataFusion")
    references = {part["bom-ref"] for part in parts} | {bill["metadata"]["component"]["bom-ref"]}
    for part in parts:
        expect(part["version"] and part["purl"].startswith("pkg:cargo/"), f"no version or purl: {part}")
    for entry in bill["dependencies"]:
        unknown = {entry["ref"], *entry.get("dependsOn", [])} - references
        expect(not unknown, f"dependencies on unknown parts: {unknown}")


def check_unit(root):
    """The unit starts what the package brings, and is neither enabled nor started by it."""
    unit = (root / "usr/lib/systemd/system/tailrace.service").read_text()
    for path in re.findall(r"^Exec\w+=(/usr/\S+)", unit, re.M):
        expect((root / path.lstrip("/")).is_file(), f"the unit starts {path}, which is not in the package")
    enabled = list(root.glob("etc/systemd/system/**/tailrace.service"))
    expect(not enabled, f"the package enables the service: {enabled}")


def wait_for(what, condition, process):
    """Waits for a condition of a running agent."""
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        expect(process.poll() is None, f"{what}: the agent ended with {process.returncode}")
        expect(time.monotonic() < deadline, f"{what}: not within {SECONDS_MAX} s")
        time.sleep(0.05)


def check_agent(root, work):
    """The agent of an unpacked root takes the packaged config, starts, reloads at SIGHUP and stops at SIGTERM."""
    binary = root / "usr/bin/tailrace"
    packaged = root / "etc/tailrace/tailrace.yaml"
    subprocess.run([binary, "validate", "-c", packaged], check=True, stdout=subprocess.DEVNULL)
    log, config = work / "app.log", work / "tailrace.yaml"
    outputs = [work / "first.jsonl", work / "second.jsonl"]

    def write_config(output):
        config.write_text(
            f"data_dir: {work}/data\n"
            f"pipelines: {{app: {{input: {{type: file, include: [{log}]}}, output: {{type: file, path: {output}}}}}}}\n"
        )

    def holds(output, text):
        return lambda: output.is_file() and text in output.read_text()

    write_config(outputs[0])
    log.write_text('{"message":"one"}\n')
    with open(work / "stderr", "wb") as stderr:
        agent = subprocess.Popen([binary, "run", "-c", config], stderr=stderr)
    try:
        wait_for("start", holds(outputs[0], "one"), agent)
        write_config(outputs[1])
        agent.send_signal(signal.SIGHUP)
        # The reload is asynchronous: lines are written until one arrives by the new config.
        def reloaded():
            with log.open("a") as file:
                file.write('{"message":"two"}\n')
            return holds(outputs[1], "two")()
        wait_for("reload", reloaded, agent)
        agent.send_signal(signal.SIGTERM)
        code = agent.wait(SECONDS_MAX)
        expect(code == 0, f"stop: the agent ended with {code}")
    except Fault as fault:
        raise Fault(f"{fault}\n{(work / 'stderr').read_text()}") from fault
    finally:
        if agent.poll() is None:
            agent.kill()


def dpkg(root, *arguments):
    """Runs dpkg on a root of its own, with the scripts of the package outside of a chroot."""
    command = ["dpkg", f"--root={root}", "--force-script-chrootless", "--log=/dev/null", *arguments]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    expect(result.returncode == 0, f"{' '.join(map(str, command))}: {result.stdout}{result.stderr}")
    return result.stdout


def check_life(directory, root):
    """dpkg installs, upgrades, removes and purges it; a changed config and the progress survive all but the purge."""
    package = one(directory, "*.deb")
    for path in ["var/lib/dpkg/updates", "var/lib/dpkg/info", "etc", "var/lib"]:
        (root / path).mkdir(parents=True, exist_ok=True)
    (root / "var/lib/dpkg/status").touch()
    accounts = pathlib.Path("/etc/passwd").read_text()
    said = dpkg(root, "--install", package)
    expect("systemctl enable --now tailrace" in said, f"the installation does not say what to do next: {said}")
    expect("tailrace:" in (root / "etc/passwd").read_text(), "no account")
    expect(re.search(r"^adm:.*tailrace", (root / "etc/group").read_text(), re.M), "the account is not in adm")
    check_unit(root)
    config = root / "etc/tailrace/tailrace.yaml"
    config.write_text(config.read_text() + "# changed\n")
    progress = root / "var/lib/tailrace/checkpoint.json"
    progress.parent.mkdir(parents=True)
    progress.write_text("{}")
    dpkg(root, "--install", package)
    expect("# changed" in config.read_text(), "an upgrade replaces the config")
    dpkg(root, "--remove", "tailrace")
    expect(not (root / "usr/bin/tailrace").exists(), "the binary is there after the removal")
    expect(config.exists() and progress.exists(), "the removal takes config or progress")
    dpkg(root, "--purge", "tailrace")
    expect(not config.exists() and not progress.exists(), "the purge leaves config or progress")
    expect(pathlib.Path("/etc/passwd").read_text() == accounts, "the test changed this system's accounts")


def main(directory):
    """Runs the checks; gives the exit code."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="tailrace-packages-"))
    root = work / "root"
    root.mkdir()
    failed = False
    binary = io.BytesIO()
    checks = [
        ("checksums", lambda: check_sums(directory)),
        ("deb: files, conffiles", lambda: check_deb(directory, root)),
        ("rpm: files, config files", lambda: binary.write(check_rpm(directory))),
        ("tar.gz: files", lambda: check_tar(directory, binary.getvalue())),
        ("bill of materials", lambda: check_sbom(root)),
        ("unit", lambda: check_unit(root)),
        ("start, reload, stop", lambda: check_agent(root, work)),
    ]
    if os.geteuid() == 0:
        checks.append(("install, upgrade, remove, purge", lambda: check_life(directory, work / "life")))
    else:
        print("skipped: install, upgrade, remove, purge (needs root)")
    try:
        for name, check in checks:
            try:
                check()
                print(f"ok: {name}")
            except Exception as fault:  # Whatever it is, it is a fault of the package.
                failed = True
                print(f"FAILED: {name}: {type(fault).__name__}: {fault}")
    finally:
        shutil.rmtree(work)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
