class K:
    def run(self, batches):
        tap()  # probepatch: any-of/a
        for i, batch in enumerate(batches):
            go(batch)
