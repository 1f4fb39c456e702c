"""The only room that writes into a checkout: commit a plan, status, revert, recover. Knows nothing of LibCST."""
