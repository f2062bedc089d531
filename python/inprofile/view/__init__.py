"""A page on a folder of results: runs and sweeps, their series, their packets, and what would be if."""

from .export import export
from .folder import Folder, NoResults
from .server import PortInUse, listen, serve

__all__ = ["Folder", "NoResults", "PortInUse", "export", "listen", "serve"]
