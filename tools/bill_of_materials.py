"""The bill of materials of a wheel (SBOM), in the format CycloneDX 1.6.

    python -m tools.bill_of_materials WHEEL...

writes `NAME-VERSION.cdx.json` beside each wheel. It has the wheel's hash, its license, and the
packages that the wheel requires, with their versions as the metadata has them: which of them an
environment has is known only there. Equal wheels give equal files.
"""

from __future__ import annotations

import argparse
import email
import hashlib
import json
import re
import uuid
import zipfile
from email.message import Message
from pathlib import Path
from typing import Any, Final

_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9][\w.-]*)[^;]*(?:;\s*(.*))?")
_EXTRA: Final = re.compile(r"extra\s*==")


def bill(wheel: Path) -> dict[str, Any]:  # JSON
    """Return the bill of materials of a wheel."""
    metadata = _metadata(wheel)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    own = _purl(metadata["Name"], metadata["Version"])
    required = _components(metadata, own)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": metadata["Name"],
                "version": metadata["Version"],
                "description": metadata["Summary"] or "",
                "purl": own,
                "licenses": [{"expression": metadata["License-Expression"]}],
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
        },
        "components": required,
        "dependencies": [
            {"ref": own, "dependsOn": [each["bom-ref"] for each in required]},
            *({"ref": each["bom-ref"]} for each in required),
        ],
    }


def write(wheel: Path) -> Path:
    """Write the bill beside its wheel; return its path."""
    name, version = wheel.name.split("-")[:2]
    path = wheel.with_name(f"{name}-{version}.cdx.json")
    path.write_text(json.dumps(bill(wheel), indent=2) + "\n")
    return path


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def _components(metadata: Message, own: str) -> list[dict[str, Any]]:
    """Return each required package once, optional if only extras require it."""
    ranges: dict[str, list[str]] = {}
    needed = set()
    for text in metadata.get_all("Requires-Dist") or []:
        found = _REQUIREMENT.fullmatch(text)
        if found is None:
            raise ValueError(f"a requirement that is not understood: {text!r}")
        name, marker = found.groups()
        purl = _purl(name)
        if purl == own.partition("@")[0]:
            continue  # an extra that has another one
        ranges.setdefault(purl, []).append(text)
        if not (marker and _EXTRA.search(marker)):
            needed.add(purl)
    return [
        {
            "type": "library",
            "bom-ref": purl,
            "name": purl.rpartition("/")[2],
            "purl": purl,
            "scope": "required" if purl in needed else "optional",
            "properties": [{"name": "python:requires-dist", "value": text} for text in texts],
        }
        for purl, texts in sorted(ranges.items())
    ]


def _purl(name: str, version: str = "") -> str:
    """Return a package URL: https://github.com/package-url/purl-spec, type pypi."""
    return f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}" + (f"@{version}" if version else "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tools.bill_of_materials", description=__doc__)
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    for wheel in parser.parse_args().wheels:
        print(write(wheel))
