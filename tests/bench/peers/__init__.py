"""The same edits, for public tools."""
