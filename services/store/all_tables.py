"""Every table of the program, for whoever makes or checks a whole database."""

from __future__ import annotations

import importlib
import pkgutil

from sqlalchemy import MetaData

import services.store
from services.store.schema import metadata


def all_tables() -> MetaData:
    """The tables of all aggregates, each of which stands in a file of services/store."""
    for module in pkgutil.iter_modules(services.store.__path__):
        if not module.ispkg:
            importlib.import_module(f"services.store.{module.name}")
    return metadata
