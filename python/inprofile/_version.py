"""The version, as the installed package states it."""

from importlib.metadata import version

__version__ = version("inprofile")
