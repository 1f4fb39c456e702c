def f(self, batch):
    for batch in batches:
        with one, sync_ctx, torch.profiler.record_function(f"micro_batch{micro_batch_idx}"):  # as ever
            pass
        with two(batch):
            pass
