"""Makes a wheel of a native module that cargo built: `wheel.py LIBRARY DIRECTORY` prints the path of the wheel.

maturin writes the metadata, by pyproject.toml, so that it is that of a wheel which maturin builds. Only the build is left
to `cargo build --workspace`: maturin builds one package, with other features of its dependencies, which means all of
DataFusion anew. See docs/decisions/0025-python-package.md.
"""

import base64
import contextlib
import hashlib
import os
import sys
import tempfile
import zipfile
from pathlib import Path

import maturin

CRATE = Path(__file__).resolve().parent
MODULE = "tailrace/_tailrace.abi3.so"
# The earliest time that a zip file can hold: equal input gives equal bytes.
TIME = (1980, 1, 1, 0, 0, 0)


def main(library: str, directory: str) -> None:
    library, directory = Path(library).resolve(), Path(directory).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        info = metadata(temporary)
        files = {}
        for path in sorted((CRATE / "python").rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                files[path.relative_to(CRATE / "python").as_posix()] = path.read_bytes()
        files[MODULE] = library.read_bytes()
        for path in sorted(info.rglob("*")):
            if path.is_file():
                files[path.relative_to(temporary).as_posix()] = path.read_bytes()
    stem = info.name.removesuffix(".dist-info")
    lines = files[f"{info.name}/WHEEL"].decode().splitlines()
    [tag] = [line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: ")]
    files[f"{info.name}/RECORD"] = record(files, f"{info.name}/RECORD")
    wheel = directory / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name == MODULE else 0o100644) << 16
            archive.writestr(entry, content)
    print(wheel)


def metadata(directory: str) -> Path:
    """The directory of the metadata that maturin writes below `directory`."""
    os.chdir(CRATE)
    # The program is beside this Python, which need not be on the PATH.
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    with contextlib.redirect_stdout(sys.stderr):
        return Path(directory) / maturin.prepare_metadata_for_build_wheel(directory)


def record(files: dict[str, bytes], own: str) -> bytes:
    """The list of the files of a wheel, with their checksums and sizes."""

    def line(name: str, content: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(content)}\n"

    lines = [line(name, content) for name, content in files.items()]
    return "".join([*lines, f"{own},,\n"]).encode()


if __name__ == "__main__":
    main(*sys.argv[1:])
