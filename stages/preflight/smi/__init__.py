"""The vendors' tools: how each is asked, and how its answer is read. What it does not say stays None."""
