"""Many machines: the same patch on every node of a Ray cluster, all of them or none. Ray only carries; on each node probepatch
itself works, with the ledger that one machine has, too."""
