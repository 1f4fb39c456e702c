class K:
    def run(self, batches):
        for i, batch in enumerate(batches):
            go(batch)
