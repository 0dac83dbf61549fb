"""The build hook: builds the ring's extension where there is a C compiler, and says so where there is none.

Guards: a missing or failing compiler never fails an installation.
"""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RingBuildHook(BuildHookInterface):
    """Runs for wheels, editable ones included."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = Path(self.root) / "src" / "fairway" / "ring"
        found = importlib.util.spec_from_file_location("fairway_ring_building", folder / "building.py")
        assert found is not None and found.loader is not None
        building = importlib.util.module_from_spec(found)
        found.loader.exec_module(building)
        try:
            target = building.build(folder)
        except building.CannotBuild as error:
            for old in folder.glob(f"{building.NAME}*{building.SUFFIX}"):
                old.unlink()
            print(f"Fairway is built without its ring: {error}", file=sys.stderr)
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{platform}"
        build_data["artifacts"].append(str(target.relative_to(self.root)))
