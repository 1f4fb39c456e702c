class SchedulerOutputProcessorMixin:
    def _process_input_token_logprobs(self, req, input_token_logprobs):
        """Process input token logprobs values and indices."""
        req.input_token_logprobs_val = [None, *input_token_logprobs[:-1]]
        req.input_token_logprobs_idx = req.origin_input_ids[req.logprob_start_len :]
