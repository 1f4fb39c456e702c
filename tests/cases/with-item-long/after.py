def f(self, batch):
    for batch in batches:
        try:  # probepatch: with-item-long/c
            with one, sync_ctx, torch.profiler.record_function(f"micro_batch{micro_batch_idx}"), self._probe_step(
                batch, 'é('
            ) as step:  # as ever
                pass
        finally:  # probepatch: with-item-long/c
            done()
        with two(batch), self.a_name_that_is_rather_long_but_cannot_be_broken_up_for_it_has_no_arguments:
            pass
