"""A page on a folder of results: runs and sweeps, their series, their packets, and what would be if.

And on a running router: what its customers get at this moment.
"""

from .control import RouterError
from .export import export
from .folder import Folder, NoResults
from .router import Watch, router
from .server import PortInUse, listen, serve

__all__ = ["Folder", "NoResults", "PortInUse", "RouterError", "Watch", "export", "listen", "router", "serve"]
