"""A build backend (PEP 517 and 660) of the standard library alone: pip has to fetch nothing to install this package."""

import base64
import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"


def _field(name):
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(rf'^{name} = "(.*)"$', text, re.MULTILINE).group(1)


NAME = _field("name")
VERSION = _field("version")
DIST_INFO = f"{NAME}-{VERSION}.dist-info"
WHEEL_FILE = f"{NAME}-{VERSION}-py3-none-any.whl"


def _metadata():
    fields = [
        "Metadata-Version: 2.1",
        f"Name: {NAME}",
        f"Version: {VERSION}",
        f"Summary: {_field('description')}",
        f"License: {_field('license')}",
        f"Requires-Python: {_field('requires-python')}",
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(fields) + "\n\n" + (ROOT / "README.md").read_text(encoding="utf-8")


def _package_files():
    files = sorted(path for path in (SOURCES / NAME).rglob("*") if path.suffix == ".py" or path.name == "py.typed")
    return {path.relative_to(SOURCES).as_posix(): path.read_bytes() for path in files}


def _write_wheel(directory, files):
    wheel = "Wheel-Version: 1.0\nGenerator: rota_build\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents = {
        **files,
        f"{DIST_INFO}/METADATA": _metadata().encode(),
        f"{DIST_INFO}/WHEEL": wheel.encode(),
    }
    record = []
    with zipfile.ZipFile(Path(directory) / WHEEL_FILE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}")
        archive.writestr(f"{DIST_INFO}/RECORD", "\n".join([*record, f"{DIST_INFO}/RECORD,,", ""]))
    return WHEEL_FILE


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _write_wheel(wheel_directory, _package_files())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _write_wheel(wheel_directory, {f"__editable__.{NAME}.pth": f"{SOURCES}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    top = f"{NAME}-{VERSION}"
    kept = ["pyproject.toml", "README.md", "build_backend/rota_build.py", *(f"src/{name}" for name in _package_files())]
    with tarfile.open(Path(sdist_directory) / f"{top}.tar.gz", "w:gz") as archive:
        for name in kept:
            archive.add(ROOT / name, f"{top}/{name}")
        information = tarfile.TarInfo(f"{top}/PKG-INFO")
        content = _metadata().encode()
        information.size = len(content)
        archive.addfile(information, io.BytesIO(content))
    return f"{top}.tar.gz"
