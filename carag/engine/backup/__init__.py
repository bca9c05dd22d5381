"""Back up a store while it is in use, and restore it, reporting what the backup lacks."""

from carag.engine.backup.back_up import BackedUp, back_up
from carag.engine.backup.manifest import Manifest
from carag.engine.backup.restore import Behind, Restored, restore

__all__ = ["BackedUp", "Behind", "Manifest", "Restored", "back_up", "restore"]
