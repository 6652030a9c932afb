"""The default storage: a folder in which only complete and synced files get their final names."""

import os
import tempfile
from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.files.storage import FileSystemStorage

CHUNK_BYTES = 1_000_000


class DurableStorage(FileSystemStorage):
    """Storage in a folder. Saving writes and syncs a temporary file, then renames it to the final name."""

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name  # names are generated, so an equal name means equal content

    def _save(self, name: str, content: "File[Any]") -> str:
        path = Path(self.path(name))
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent)  # mode 0600
        try:
            with os.fdopen(descriptor, "wb") as target:
                for chunk in content.chunks(CHUNK_BYTES):
                    target.write(chunk)
                target.flush()
                os.fsync(target.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        self._sync_folders(path.parent)
        return name

    def _sync_folders(self, folder: Path) -> None:
        """Sync the folder of the file and the folders above it, which may be new as well."""
        base = Path(self.location)
        while folder.is_relative_to(base):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            folder = folder.parent
