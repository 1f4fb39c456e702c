"""One file per command. Only here do the engine (codemods) and the ledger (patch_ledger) meet."""

__version__ = "0.1.0"
